#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "yoke/comm/block_plan.h"
#include "yoke/elastic/placement/policy.h"

namespace yoke::test {

inline std::vector<elastic::Worker> workers_of_speed(const std::vector<double>& speeds) {
  std::vector<elastic::Worker> workers;
  for (const double speed : speeds) workers.push_back({.speed = speed});
  return workers;
}

/// The worker of each leaf.
inline std::vector<int> owners(const comm::BlockPlan& plan) {
  std::vector<int> owner(static_cast<std::size_t>(plan.leaves()), -1);
  for (const auto& block : plan.blocks()) {
    std::fill(owner.begin() + block.first(), owner.begin() + block.last() + 1, block.owner);
  }
  return owner;
}

/// How many leaves each worker has.
inline std::vector<std::int64_t> counts(const comm::BlockPlan& plan) {
  std::vector<std::int64_t> count(static_cast<std::size_t>(plan.ranks()));
  for (const int owner : owners(plan)) ++count.at(static_cast<std::size_t>(owner));
  return count;
}

}  // namespace yoke::test
