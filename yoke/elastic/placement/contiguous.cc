#include "yoke/elastic/placement/contiguous.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <queue>
#include <utility>
#include <vector>

#include "yoke/elastic/placement/check.h"

namespace yoke::elastic {
namespace {

comm::BlockPlan side_by_side(const std::vector<std::int64_t>& counts) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  std::int64_t first = 0;
  for (const std::int64_t count : counts) {
    ranges.emplace_back(first, count);
    first += count;
  }
  return comm::BlockPlan(std::move(ranges));
}

/// The most aligned blocks that a range within so many leaves is cut into.
int blocks_of_a_range(std::int64_t leaves) {
  const int whole_doublings = std::bit_width(static_cast<std::uint64_t>(leaves)) - 1;
  return std::max(1, 2 * whole_doublings);
}

/// Hands `leaves` out one by one, each to the worker for which cost(worker, count + 1) is least; of
/// equals to the first.
template <typename Cost>
void hand_out(std::int64_t leaves, std::vector<std::int64_t>& counts, const Cost& cost) {
  using Offer = std::pair<double, std::size_t>;
  std::priority_queue<Offer, std::vector<Offer>, std::greater<>> offers;
  const auto offer = [&](std::size_t worker) {
    offers.emplace(cost(worker, counts[worker] + 1), worker);
  };
  for (std::size_t worker = 0; worker < counts.size(); ++worker) offer(worker);
  for (; leaves > 0; --leaves) {
    const std::size_t worker = offers.top().second;
    offers.pop();
    ++counts[worker];
    offer(worker);
  }
}

}  // namespace

comm::BlockPlan RoundRobin::place(std::int64_t leaves, std::span<const Worker> workers,
                                  std::uint64_t) const {
  check_workers(name(), leaves, workers);
  return comm::BlockPlan::even(leaves, static_cast<int>(workers.size()));
}

comm::BlockPlan LeastLoaded::place(std::int64_t leaves, std::span<const Worker> workers,
                                   std::uint64_t) const {
  check_workers(name(), leaves, workers);
  std::vector<std::int64_t> counts(workers.size());
  hand_out(leaves, counts, [&](std::size_t worker, std::int64_t count) {
    return workers[worker].load + static_cast<double>(count);
  });
  return side_by_side(counts);
}

comm::BlockPlan Proportional::place(std::int64_t leaves, std::span<const Worker> workers,
                                    std::uint64_t) const {
  check_workers(name(), leaves, workers);
  const double total = check_some(name(), "speed", workers, &Worker::speed);
  std::vector<std::int64_t> counts;
  std::int64_t left = leaves;
  for (const Worker& worker : workers) {
    // Nobody is done before V / sum(v); so much each worker can do by then in any case.
    const double share = static_cast<double>(leaves) * (worker.speed / total);
    counts.push_back(std::min(left, static_cast<std::int64_t>(std::floor(share))));
    left -= counts.back();
  }
  hand_out(left, counts, [&](std::size_t worker, std::int64_t count) {
    return static_cast<double>(count) / workers[worker].speed;
  });
  return side_by_side(counts);
}

int RoundRobin::most_blocks(std::int64_t leaves, int) const {
  return blocks_of_a_range(leaves);
}

int LeastLoaded::most_blocks(std::int64_t leaves, int) const {
  return blocks_of_a_range(leaves);
}

int Proportional::most_blocks(std::int64_t leaves, int) const {
  return blocks_of_a_range(leaves);
}

}  // namespace yoke::elastic
