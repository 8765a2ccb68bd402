#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "yoke/comm/communicator.h"

namespace yoke::bench {

/// Gloo's all-reduce of float32 sums between the ranks of `comm`, over TCP on the loopback: its
/// default algorithm. Collective. Empty, with a reason in `why`, where this program was built
/// without it.
std::function<void(std::span<std::byte>)> gloo_all_reduce(comm::Communicator& comm,
                                                          std::string& why);

}  // namespace yoke::bench
