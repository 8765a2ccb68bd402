#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "yoke/net/place.h"
#include "yoke/net/store.h"
#include "yoke/net/transport.h"

namespace yoke::net {

struct TcpOptions {
  std::string token{};  ///< as in RendezvousOptions
  Clock::duration connect_timeout = std::chrono::seconds(60);
  Clock::duration user_timeout =
      std::chrono::seconds(20);                  ///< TCP_USER_TIMEOUT: a cut cable is an error
  std::string bind_address{};                    ///< empty: the address that reaches the master
  const std::atomic<bool>* cancelled = nullptr;  ///< ends the wait for the others when it is true
};

/// Two connections for each pair of ranks, one for data and one for control (net/tcp/data_link.h,
/// net/tcp/control_plane.h). Collective: every rank of the place calls it with the same `name`,
/// which tells this communicator's connections from others of the job. Frames carry magic,
/// generation, tag, sizes and a CRC-32C of header and payload; counters().wire_bytes is the payload
/// and kFrameHeaderBytes for each of frames_of(bytes) frames of a message (net/wire.h).
///
/// Throws Timeout that names the ranks that did not connect, PeerLost when the process of one has
/// ended, JoinRefused when one does not accept this rank.
std::unique_ptr<Transport> make_tcp_transport(const Place& place, Store& store,
                                              const std::string& name, const TcpOptions& options);

}  // namespace yoke::net
