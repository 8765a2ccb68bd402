#pragma once

#include <string>

#include "yoke/net/place.h"
#include "yoke/net/socket.h"

namespace yoke::net {

struct OpenPort {
  Descriptor socket;
  std::string published;  ///< how the other ranks of the job reach it
};

/// A free port for the other ranks, on the interface that leads to them; `bind_address` chooses one
/// by hand. Throws IoError, Timeout.
OpenPort listen_for_ranks(const Place& place, const std::string& bind_address, Deadline deadline);

}  // namespace yoke::net
