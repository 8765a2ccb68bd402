#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "yoke/comm/communicator.h"

namespace yoke::test {

/// A few steps of a small network that has all that is awkward: a parameter used twice, one used by
/// some micro-batches only, one never, one that is frozen, one without elements, float64 among
/// float32; buffers that change, that do not, that are integers, that are not contiguous. Ranks are
/// threads, and start from different weights and buffers.
struct Trial {
  int ranks = 1;
  comm::TransportKind transport = comm::TransportKind::kSharedMemory;
  comm::Topology topology = comm::Topology::kAuto;
  std::size_t bucket_bytes = 4 << 20;
  std::string optimizer = "adamw";
  std::int64_t leaf = 1;
  /// Of each step. The last micro-batch of a step has fewer samples. The last step leaves most
  /// ranks without any.
  std::vector<std::int64_t> micro_batches{7, 8, 1};
  bool delays = false;  ///< before each call on a communicator's thread
  /// Blocks are drawn: in turn, the last by all ranks; and each rank gives up one in the middle.
  bool drawn = false;
};

using Bits = std::map<std::string, std::vector<std::byte>>;

/// What one rank holds after the last step.
struct TrialResult {
  Bits state;  ///< parameters/..., buffers/..., optimizer/..., module/... and norms and losses
  Bits first;  ///< gradients and buffers after the first step
  bool state_is_shared = false;
  std::vector<int> sent_before_last;  ///< by step: gradient messages before the last micro-batch
  std::vector<int> sent;              ///< by step: in all
};

std::vector<TrialResult> run(const Trial& trial);

/// The first step's gradients and buffers by a plain loop of libtorch and a recursive sum.
Bits first_step_alone(const Trial& trial);

/// The bits that rank 0 starts from.
Bits initial_state();

}  // namespace yoke::test
