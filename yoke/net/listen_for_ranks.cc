#include "yoke/net/listen_for_ranks.h"

#include "yoke/base/error.h"

namespace yoke::net {

OpenPort listen_for_ranks(const Place& place, const std::string& bind_address, Deadline deadline) {
  const auto as_seen_here = [](Descriptor socket) {
    std::string published = own_address(socket.number()).text();
    return OpenPort{std::move(socket), std::move(published)};
  };
  if (!bind_address.empty()) return as_seen_here(listen_on(resolve(bind_address, 0, deadline)));
  const auto route = route_to(resolve(place.master_address, 0, deadline));
  const bool all_here = place.local_size == place.size && route.is_loopback();
  const bool is_masters_host = place.rank == 0 || route.is_loopback();
  if (all_here || !is_masters_host) return as_seen_here(listen_on(route));
  // This host may see itself by a name or address that the others cannot use; the master's they
  // can.
  auto socket = listen_on(route.any());
  const auto port = own_address(socket.number()).port();
  return {std::move(socket), cat(place.master_address, ":", port)};
}

}  // namespace yoke::net
