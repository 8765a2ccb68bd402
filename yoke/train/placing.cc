#include "yoke/train/placing.h"

#include <algorithm>
#include <set>

#include "yoke/base/error.h"
#include "yoke/elastic/placement/make_policy.h"

namespace yoke::train {

namespace {

/// A worker that was too slow for a single leaf gets one in every so many steps, to show that it
/// has become faster.
constexpr std::int64_t kStepsBetweenProbes = 50;
/// What a step's number of leaves counts in the average.
constexpr double kNewest = 0.25;

}  // namespace

Placing::Placing(const RunConfig& config, std::int64_t most_leaves, int workers)
    : weights_(elastic::weights_from(config.elastic.weights)),
      most_leaves_(most_leaves),
      workers_(workers),
      timeout_(std::chrono::duration_cast<Clock::duration>(Seconds(config.comm.timeout))) {
  if (config.elastic.placement != elastic::kDynamicPlacement) {
    policy_ = elastic::make_policy(config.elastic.placement,
                                   static_cast<std::uint64_t>(config.train.seed));
  }
  // Ranks that are not there have their weights in reserve.
  weights_.resize(static_cast<std::size_t>(workers), 1);
  if (std::ranges::max(weights_) == 0) {
    throw ConfigError(cat("elastic.weights gives all of the ", workers,
                          " ranks that there are 0, so nobody would compute anything."));
  }
}

int Placing::most_blocks() const {
  return in_step() ? elastic::LeafDraws::most_draws(most_leaves_, workers_)
                   : policy_->most_blocks(most_leaves_, workers_);
}

void Placing::open(const World& world, comm::Communicator& communicator) {
  if (!in_step()) return;
  draws_ = std::make_unique<elastic::LeafDraws>(
      elastic::DrawBoard::make(world, communicator, most_blocks(), timeout_), workers_);
}

comm::BlockPlan Placing::plan(std::int64_t leaves, std::int64_t step) const {
  return policy_->place(leaves, workers(leaves, step), static_cast<std::uint64_t>(step));
}

std::vector<elastic::Worker> Placing::workers(std::int64_t leaves, std::int64_t step) const {
  std::vector<elastic::Worker> all(static_cast<std::size_t>(workers_));
  const auto speeds = meter_.speeds(workers_);
  const double fastest = std::ranges::max(speeds);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].weight = weights_[i];
    all[i].speed = speeds[i];
    if (step % kStepsBetweenProbes == 0) {
      const double for_one_leaf =
          1.5 * fastest * static_cast<double>(workers_) / static_cast<double>(leaves);
      all[i].speed = std::max(all[i].speed, std::min(fastest, for_one_leaf));
    }
    // A worker below the highest speed is taken for one that works for others as well: for as many
    // leaves as it would have done besides.
    if (i < usual_.size()) all[i].load = usual_[i] * (fastest / all[i].speed - 1);
  }
  return all;
}

void Placing::note(const std::vector<sync::Summary::Result>& results, std::int64_t leaf,
                   const std::vector<double>& seconds) {
  std::vector<std::set<std::int64_t>> leaves(static_cast<std::size_t>(workers_));
  for (const auto& result : results)
    leaves[static_cast<std::size_t>(result.rank)].insert(result.micro_batch / leaf);
  const bool first = usual_.empty();
  usual_.resize(leaves.size());
  for (std::size_t rank = 0; rank < leaves.size(); ++rank) {
    const auto count = static_cast<double>(leaves[rank].size());
    meter_.note(static_cast<int>(rank), static_cast<std::int64_t>(leaves[rank].size()),
                seconds[rank]);
    usual_[rank] = first ? count : usual_[rank] + kNewest * (count - usual_[rank]);
  }
}

}  // namespace yoke::train
