#pragma once

#include <string>
#include <vector>

#include "yoke/net/place.h"
#include "yoke/net/socket.h"
#include "yoke/net/store.h"
#include "yoke/net/tcp/transport.h"

namespace yoke::net {

/// Two connections to every other rank; the own rank's are empty.
struct Mesh {
  std::vector<Descriptor> data, control;
};

/// Every rank listens at a port of its own and publishes it in the store; rank i calls all j < i,
/// and is called by all j > i. Both sides prove that they know the token (net/handshake.h).
/// Strangers at the port are refused and logged, and keep nobody out.
///
/// Throws Timeout that names the ranks that are missing; PeerLost when the process of a rank has
/// ended; and what another rank tells that has failed here.
Mesh connect_mesh(const Place& place, Store& store, const std::string& name,
                  const TcpOptions& options);

}  // namespace yoke::net
