#include <algorithm>

#include "yoke/elastic/roster.h"

/// When a generation is complete, and who stands where in it.
namespace yoke::elastic {

namespace {
using Phase = Roster::Worker::Phase;
}  // namespace

void Roster::form_if_complete(Now now) {
  if (state_ != State::kGathering || !running_members().empty()) return;
  std::vector<WorkerId> ready;
  bool anyone_live = false, some_start = false;
  for (auto& [id, worker] : workers_) {
    // It may share memory with the others, and wake up: not before it is known to be dead.
    if (!worker.doomed.empty() && agents_.contains(worker.agent)) return;
    if (!worker.doomed.empty()) continue;
    some_start = some_start || worker.phase == Phase::kStarting;
    if (worker.phase != Phase::kReady) continue;
    if (!worker.leaving.empty()) continue;
    ready.push_back(id);
    anyone_live = anyone_live || worker.standing.live;
  }
  const int least = std::max(1, options_.min_workers);
  if (static_cast<int>(ready.size()) < least) return;
  // Those who hold the state wait for nobody; those who do not wait for all.
  if (some_start && !anyone_live) return;
  if (broken_ && changes_.empty()) {
    const Ruling ruling = budget_.broke();
    if (!ruling.restart)
      return finish({.exit_code = ruling.exit_code, .cause = "partitioned", .why = ruling.why});
    note(-1, {.cause = "partitioned", .detail = "ranks lost each other, and all of them live"},
         since_);
  }
  for (auto& [id, worker] : workers_) {
    if (worker.doomed.empty() && worker.phase == Phase::kReady && !worker.leaving.empty()) {
      worker.phase = Phase::kDone;
      actions_.push_back(Dismiss{id});
    }
    worker.rank = -1;
  }
  const auto newest = [&](WorkerId id) {
    const Standing& standing = workers_.at(id).standing;
    return standing.live ? standing.step : -1;
  };
  std::ranges::sort(ready, {}, [&](WorkerId id) { return workers_.at(id).slot; });
  const auto first = std::ranges::max_element(ready, {}, newest);
  std::rotate(ready.begin(), first, first + 1);

  ++generation_;
  if (first_) {
    changes_.clear();
    note(-1, {.cause = "start", .detail = {}}, now);
  } else if (changes_.empty()) {
    note(-1, {.cause = "coordinator", .detail = {}}, now);
  }
  for (auto& [about, change] : changes_) unnoted_.push_back(change);
  last_changes_ = unnoted_;
  changes_.clear();
  for (std::size_t rank = 0; rank < ready.size(); ++rank) {
    Worker& worker = workers_.at(ready[rank]);
    worker.rank = static_cast<int>(rank);
    worker.phase = Phase::kRunning;
    worker.last_sign = now;
    worker.beat = {.generation = generation_, .step = worker.standing.step};
  }
  state_ = State::kRunning;
  opened_at_ = newest(ready.front());
  first_ = broken_ = asked_ = false;
  actions_.push_back(OpenGeneration{.generation = generation_,
                                    .members = ready,
                                    .changes = last_changes_,
                                    .since = since_,
                                    .anyone_live = anyone_live,
                                    .reached = reached_});
  // It stands: the next one will not be the first.
  reached_ = std::max<std::int64_t>(reached_, 0);
  if (stopping_) actions_.push_back(StopAll{ready});
}

void Roster::recover(const std::vector<WorkerId>& members, int wanted, std::int64_t reached,
                     Now now) {
  options_.workers = wanted;
  reached_ = reached;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    Worker& worker = workers_[members[rank]];
    worker.rank = static_cast<int>(rank);
    worker.phase = Phase::kRunning;
    worker.last_sign = now;
    worker.beat.generation = generation_;
  }
  if (!members.empty()) state_ = State::kRunning;
}

}  // namespace yoke::elastic
