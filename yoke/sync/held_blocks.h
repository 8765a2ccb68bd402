#pragma once

#include <vector>

#include "yoke/comm/block_plan.h"

namespace yoke::sync {

/// Who holds which block of a step, and where.
struct HeldBlocks {
  comm::BlockPlan plan;
  std::vector<int> places;  ///< by position in plan.blocks(): which of its owner's blocks it is

  /// Each rank's blocks in leaf order.
  static HeldBlocks in_order(comm::BlockPlan plan) {
    std::vector<int> places;
    for (int position = 0; position < static_cast<int>(plan.blocks().size()); ++position)
      places.push_back(plan.place_at_owner(position));
    return {std::move(plan), std::move(places)};
  }
};

}  // namespace yoke::sync
