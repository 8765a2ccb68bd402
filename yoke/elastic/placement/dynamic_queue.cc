#include "yoke/elastic/placement/dynamic_queue.h"

#include <algorithm>

#include "yoke/base/error.h"

namespace yoke::elastic {

DynamicQueue::DynamicQueue(std::int64_t leaves, int workers, const DynamicOptions& options)
    : leaves_(leaves), options_(options), free_leaves_(leaves) {
  YOKE_ENSURE(leaves >= 0, leaves, " leaves to place.");
  if (workers < 1 || options.share < 1) {
    throw ConfigError(cat("dynamic placement over ", workers, " workers with share ", options.share,
                          "; both are at least 1."));
  }
  living_.assign(static_cast<std::size_t>(workers), true);
  for (const LeafBlock& block : aligned_blocks(0, leaves)) free_[block.first()] = block.level;
}

std::size_t DynamicQueue::checked(int worker) const {
  YOKE_ENSURE(worker >= 0 && worker < static_cast<int>(living_.size()), "worker ", worker, " of ",
              living_.size());
  return static_cast<std::size_t>(worker);
}

std::optional<DynamicQueue::Draw> DynamicQueue::draw(int worker) {
  const std::lock_guard lock(mutex_);
  if (!living_[checked(worker)]) return std::nullopt;
  return free_.empty() ? draw_backup(worker) : draw_free(worker);
}

std::optional<DynamicQueue::Draw> DynamicQueue::draw_free(int worker) {
  const auto workers = std::count(living_.begin(), living_.end(), true);
  const std::int64_t wanted = std::max<std::int64_t>(1, free_leaves_ / (options_.share * workers));
  auto [first, level] = *free_.begin();
  free_.erase(free_.begin());
  while (std::int64_t{1} << level > wanted) {
    --level;
    free_[first + (std::int64_t{1} << level)] = level;
  }
  free_leaves_ -= std::int64_t{1} << level;
  drawn_[first] = {.level = level, .number = draws_++, .holders = {worker}};
  return Draw{.block = {.level = level, .index = first >> level}};
}

std::optional<DynamicQueue::Draw> DynamicQueue::draw_backup(int worker) {
  if (!options_.backup) return std::nullopt;
  auto best = drawn_.end();
  for (auto drawn = drawn_.begin(); drawn != drawn_.end(); ++drawn) {
    const auto& [first, block] = *drawn;
    if (block.owner != kNobody || block.repeated || block.holders.front() == worker) continue;
    if (best == drawn_.end() || block.number < best->second.number) best = drawn;
  }
  if (best == drawn_.end()) return std::nullopt;
  auto& [first, block] = *best;
  block.repeated = true;
  block.holders.push_back(worker);
  return Draw{.block = {.level = block.level, .index = first >> block.level}, .backup = true};
}

DynamicQueue::Verdict DynamicQueue::finish(int worker, const LeafBlock& block, std::uint64_t bits) {
  const std::lock_guard lock(mutex_);
  if (!living_[checked(worker)]) return Verdict::kLost;
  const auto found = drawn_.find(block.first());
  const bool known = found != drawn_.end() && found->second.level == block.level;
  const auto holder =
      known ? std::find(found->second.holders.begin(), found->second.holders.end(), worker)
            : std::vector<int>::iterator();
  YOKE_ENSURE(known && holder != found->second.holders.end(), "worker ", worker,
              " finished a block of ", block.count(), " leaves from ", block.first(),
              " on, which it does not hold.");
  Drawn& drawn = found->second;
  drawn.holders.erase(holder);
  if (drawn.owner != kNobody) return drawn.bits == bits ? Verdict::kSecond : Verdict::kDiffers;
  drawn.owner = worker;
  drawn.bits = bits;
  return Verdict::kCounts;
}

void DynamicQueue::lost(int worker, bool results_survive) {
  const std::lock_guard lock(mutex_);
  living_[checked(worker)] = false;
  for (auto next = drawn_.begin(); next != drawn_.end();) {
    const auto current = next++;
    auto& [first, drawn] = *current;
    std::erase(drawn.holders, worker);
    if (drawn.owner == worker && !results_survive) drawn.owner = kNobody;
    if (drawn.owner != kNobody) continue;
    drawn.repeated = drawn.holders.size() > 1;
    if (!drawn.holders.empty()) continue;
    give_back(first, drawn.level);
    drawn_.erase(current);
  }
}

/// Free neighbours that make an aligned block become it, so that it may be drawn as a whole.
void DynamicQueue::give_back(std::int64_t first, int level) {
  free_leaves_ += std::int64_t{1} << level;
  for (;;) {
    const auto neighbour = free_.find(first ^ (std::int64_t{1} << level));
    if (neighbour == free_.end() || neighbour->second != level) break;
    first = std::min(first, neighbour->first);
    free_.erase(neighbour);
    ++level;
  }
  free_[first] = level;
}

bool DynamicQueue::done() const {
  const std::lock_guard lock(mutex_);
  return free_.empty() && std::all_of(drawn_.begin(), drawn_.end(), [](const auto& drawn) {
           return drawn.second.owner != kNobody;
         });
}

comm::BlockPlan DynamicQueue::plan() const {
  YOKE_ENSURE(done(), "the plan of a step that is not done.");
  const std::lock_guard lock(mutex_);
  std::vector<comm::Block> blocks;
  for (const auto& [first, drawn] : drawn_) {
    blocks.push_back({.level = drawn.level, .index = first >> drawn.level, .owner = drawn.owner});
  }
  return comm::BlockPlan::of_blocks(std::move(blocks), static_cast<int>(living_.size()));
}

}  // namespace yoke::elastic
