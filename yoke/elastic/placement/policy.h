#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "yoke/comm/block_plan.h"

namespace yoke::elastic {

/// What a policy may know of a worker.
struct Worker {
  double weight = 1;  ///< its share, as the user says; at least 0
  double speed = 1;   ///< leaves a second (elastic/placement/speed_meter.h); 0: gets none
  double load = 0;    ///< leaves that it has to do besides, for others; at least 0
};

/// Says which worker computes which leaves of a step. Placement cannot change a result (design,
/// section 2), only when it is there; so a policy is free, and a wrong guess costs time and no
/// bits.
///
/// Pure: the same arguments give the same plan on every worker, without a word between them. Leaves
/// move in whole aligned blocks of a power of two, since a worker keeps a partial sum for each
/// block that it holds: elastic/placement/contiguous.h and scattered.h state how many that are. A
/// policy that decides while the step runs is elastic/placement/dynamic_queue.h.
class PlacementPolicy {
 public:
  virtual ~PlacementPolicy() = default;
  virtual std::string name() const = 0;
  /// Leaves 0 .. leaves-1 over the workers; each leaf once, workers may get none. `step` is for
  /// policies that draw lots. Throws ConfigError when no worker may get anything, or a number of a
  /// worker is negative or not finite.
  virtual comm::BlockPlan place(std::int64_t leaves, std::span<const Worker> workers,
                                std::uint64_t step) const = 0;
  /// A bound on the blocks that one worker holds, whatever place() is asked, up to so many leaves.
  virtual int most_blocks(std::int64_t leaves, int workers) const = 0;
};

}  // namespace yoke::elastic
