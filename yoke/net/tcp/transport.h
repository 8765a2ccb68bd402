#pragma once

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
      std::chrono::seconds(20);  ///< TCP_USER_TIMEOUT: a cut cable is an error
  std::string bind_address{};    ///< empty: the address that reaches the master
};

/// One connection for each pair of ranks. Collective: every rank of the place calls it with the
/// same `name`, which tells this communicator's connections from others of the job. Frames carry
/// magic, generation, tag, sizes and a CRC-32C of header and payload.
std::unique_ptr<Transport> make_tcp_transport(const Place& place, Store& store,
                                              const std::string& name, const TcpOptions& options);

}  // namespace yoke::net
