#include "yoke/elastic/placement/scattered.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "yoke/base/error.h"
#include "yoke/elastic/placement/check.h"
#include "yoke/elastic/placement/leaf_block.h"

namespace yoke::elastic {

ScatteredPolicy::ScatteredPolicy(int pieces_per_worker) : pieces_per_worker_(pieces_per_worker) {
  if (pieces_per_worker < 1) {
    throw ConfigError(
        cat("placement: ", pieces_per_worker, " pieces for each worker; at least 1 is needed."));
  }
}

comm::BlockPlan ScatteredPolicy::place(std::int64_t leaves, std::span<const Worker> workers,
                                       std::uint64_t step) const {
  check_workers(name(), leaves, workers);
  const int count = static_cast<int>(workers.size());
  const std::int64_t wanted = std::int64_t{pieces_per_worker_} * count;
  int level = 0;
  while (leaves >> (level + 1) >= wanted) ++level;
  const std::int64_t size = std::int64_t{1} << level;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(leaves >> level), size);
  if (leaves % size > 0) sizes.push_back(leaves % size);

  const auto owners = assign(sizes, workers, step);
  std::vector<comm::Block> blocks;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    for (const LeafBlock& block : aligned_blocks(first, sizes[i])) {
      blocks.push_back({.level = block.level, .index = block.index, .owner = owners[i]});
    }
    first += sizes[i];
  }
  return comm::BlockPlan::of_blocks(std::move(blocks), count);
}

int ScatteredPolicy::most_blocks(std::int64_t leaves, int workers) const {
  const auto pieces = std::min(leaves, 2 * std::int64_t{pieces_per_worker_} * workers);
  return static_cast<int>(pieces) + std::bit_width(static_cast<std::uint64_t>(leaves));
}

std::vector<int> WeightedRoundRobin::assign(std::span<const std::int64_t> sizes,
                                            std::span<const Worker> workers, std::uint64_t) const {
  const double total = check_some(name(), "weight", workers, &Worker::weight);
  std::vector<double> credit(workers.size());
  std::vector<int> owners;
  for (std::size_t turn = 0; turn < sizes.size(); ++turn) {
    for (std::size_t i = 0; i < workers.size(); ++i) credit[i] += workers[i].weight;
    const auto best = std::max_element(credit.begin(), credit.end());
    *best -= total;
    owners.push_back(static_cast<int>(best - credit.begin()));
  }
  return owners;
}

std::vector<int> Random::assign(std::span<const std::int64_t> sizes,
                                std::span<const Worker> workers, std::uint64_t step) const {
  const RandomKey lots = key_.with(step);
  std::vector<int> owners;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    owners.push_back(static_cast<int>(lots.bits(i) % workers.size()));
  }
  return owners;
}

PowerOfChoices::PowerOfChoices(std::uint64_t seed, int choices, int pieces_per_worker)
    : ScatteredPolicy(pieces_per_worker),
      key_(RandomKey(seed).with("power of choices")),
      choices_(choices) {
  if (choices < 1) {
    throw ConfigError(
        cat("placement: ", choices, " choices for each piece; at least 1 is needed."));
  }
}

std::vector<int> PowerOfChoices::assign(std::span<const std::int64_t> sizes,
                                        std::span<const Worker> workers, std::uint64_t step) const {
  const RandomKey lots = key_.with(step);
  std::vector<double> load;
  for (const Worker& worker : workers) load.push_back(worker.load);
  std::vector<int> owners;
  std::uint64_t draw = 0;
  for (const std::int64_t size : sizes) {
    std::size_t best = workers.size();
    for (int choice = 0; choice < choices_; ++choice) {
      const std::size_t candidate = lots.bits(draw++) % workers.size();
      if (best == workers.size() || load[candidate] < load[best]) best = candidate;
    }
    load[best] += static_cast<double>(size);
    owners.push_back(static_cast<int>(best));
  }
  return owners;
}

}  // namespace yoke::elastic
