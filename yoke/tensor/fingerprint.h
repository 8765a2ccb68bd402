#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "yoke/comm/communicator.h"
#include "yoke/net/world.h"

namespace yoke::tensor {

/// What must be equal on two workers for their bits to be equal: build, libtorch, processor model
/// and instruction set, threads, plan, and the hash of the gradient of a small fixed network
/// ("probe").
struct Fingerprint {
  std::map<std::string, std::string> parts;
  std::string text() const;  ///< one "name: value" a line
};

/// Of this process. Runs the probe (some milliseconds).
Fingerprint fingerprint(std::int64_t threads, const std::string& plan);

/// Parts that differ, "processor: here A, on rank 3 B", with "; " between them.
std::string differences(const Fingerprint& here, const std::string& there,
                        const std::string& whose);

/// Collective. Throws JoinRefused on every rank if a rank's fingerprint differs from rank 0's,
/// naming both sides and what differs; with `mixed` it is a warning of rank 0, and false is
/// returned: the promise of equal bits is off.
bool agree_on_fingerprint(const World& world, comm::Communicator& communicator,
                          const Fingerprint& mine, bool mixed);

}  // namespace yoke::tensor
