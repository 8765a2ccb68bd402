#pragma once

#include "yoke/elastic/placement/policy.h"

/// Policies that give each worker one range of leaves, in the order of the workers: they decide how
/// many, not which. A range of n leaves is at most max(1, 2 log2 n) aligned blocks (log2 rounded
/// down), and n = V / W with both powers of two is one.
namespace yoke::elastic {

/// As even as can be: BlockPlan::even. What round-robin comes to when leaves are equal and a
/// worker's turns are laid side by side.
class RoundRobin final : public PlacementPolicy {
 public:
  std::string name() const override { return "round-robin"; }
  comm::BlockPlan place(std::int64_t leaves, std::span<const Worker> workers,
                        std::uint64_t step) const override;
  int most_blocks(std::int64_t leaves, int workers) const override;
};

/// Each leaf to the worker that has the least to do so far, `load` included: the highest load is as
/// low as it can be. Knows nothing of speed.
class LeastLoaded final : public PlacementPolicy {
 public:
  std::string name() const override { return "least-loaded"; }
  comm::BlockPlan place(std::int64_t leaves, std::span<const Worker> workers,
                        std::uint64_t step) const override;
  int most_blocks(std::int64_t leaves, int workers) const override;
};

/// Leaves in proportion to `speed`, rounded so that the last worker is done as early as whole
/// leaves allow. For workers of speeds v at an equal split the speed-up is sum(v) / (W min(v)), but
/// for the rounding. A speed of 0 gets nothing.
class Proportional final : public PlacementPolicy {
 public:
  std::string name() const override { return "proportional"; }
  comm::BlockPlan place(std::int64_t leaves, std::span<const Worker> workers,
                        std::uint64_t step) const override;
  int most_blocks(std::int64_t leaves, int workers) const override;
};

}  // namespace yoke::elastic
