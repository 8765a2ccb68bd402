#pragma once

#include <cstdint>
#include <vector>

#include "yoke/comm/block_plan.h"

namespace yoke::sync {

/// What one rank does with the gradient of each of its leaves: how many waiting partial sums it
/// completes, and where the result goes. Made once a step from the plan; the same for every
/// parameter.
class LeafSchedule {
 public:
  struct Leaf {
    int merges = 0;  ///< waiting sums of levels 0 .. merges-1 are added, in that order
    int block =
        -1;  ///< the result is this one of the rank's blocks; -1: it waits at level `merges`
  };

  LeafSchedule() = default;
  LeafSchedule(const comm::BlockPlan& plan, int rank);

  std::int64_t first() const { return first_; }
  std::int64_t count() const { return static_cast<std::int64_t>(leaves_.size()); }
  const Leaf& of(std::int64_t leaf) const {
    return leaves_[static_cast<std::size_t>(leaf - first_)];
  }
  int levels() const { return levels_; }

 private:
  std::int64_t first_ = 0;
  std::vector<Leaf> leaves_;
  int levels_ = 1;
};

}  // namespace yoke::sync
