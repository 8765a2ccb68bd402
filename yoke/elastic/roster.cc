#include "yoke/elastic/roster.h"

#include <algorithm>
#include <utility>

#include "yoke/base/exit_code.h"
#include "yoke/base/text.h"

namespace yoke::elastic {

namespace {

using Phase = Roster::Worker::Phase;

std::string cause_of(const WorkerEnd& end) {
  switch (charge_of(end)) {
    case Charge::kMemory:
      return "oom";
    case Charge::kInfrastructure:
      return end.exit_code == kExitPeerLost ? "partitioned" : "killed";
    default:
      return "user_error";
  }
}

std::string detail_of(const WorkerEnd& end) {
  if (end.signal != 0) return cat("signal ", end.signal);
  return cat("exit code ", end.exit_code);
}

}  // namespace

Roster::Roster(const RosterOptions& options, std::uint64_t generation, WorkerId next_worker)
    : options_(options),
      budget_(options.restarts),
      generation_(generation),
      next_worker_(next_worker),
      first_(generation == 0) {}

std::vector<Action> Roster::take_actions() {
  return std::exchange(actions_, {});
}

std::vector<WorkerId> Roster::running_members() const {
  std::vector<WorkerId> all;
  for (const auto& [id, worker] : workers_) {
    if (worker.rank >= 0 && worker.doomed.empty() && worker.phase == Phase::kRunning)
      all.push_back(id);
  }
  return all;
}

int Roster::present() const {
  return static_cast<int>(std::ranges::count_if(workers_, [](const auto& entry) {
    const Worker& worker = entry.second;
    return worker.doomed.empty() && worker.leaving.empty() && worker.phase != Phase::kDone;
  }));
}

int Roster::free_slot() const {
  int slot = 0;
  const auto taken = [&] {
    return std::ranges::any_of(workers_, [&](const auto& w) { return w.second.slot == slot; });
  };
  while (taken()) ++slot;
  return slot;
}

AgentId Roster::agent_with_room() const {
  AgentId best = -1;
  int most_room = 0;
  for (const auto& [agent, slots] : agents_) {
    const auto used = std::ranges::count_if(
        workers_, [id = agent](const auto& entry) { return entry.second.agent == id; });
    const int room = slots - static_cast<int>(used);
    // Beyond what they said they take, the emptiest takes what is wanted all the same.
    if (best < 0 || room > most_room) {
      best = agent;
      most_room = room;
    }
  }
  return best;
}

void Roster::fill(Now now, Clock::duration after) {
  if (state_ == State::kOver || stopping_ || some_done_) return;
  while (present() < options_.workers) {
    const AgentId agent = agent_with_room();
    if (agent < 0) return;
    const WorkerId id = next_worker_++;
    Worker& worker = workers_[id];
    worker.agent = agent;
    worker.slot = -1;
    worker.slot = free_slot();
    worker.last_sign = now + after;
    actions_.push_back(StartWorker{agent, id, worker.slot, after});
  }
}

void Roster::note(WorkerId worker, Change change, Now now) {
  if (changes_.empty()) since_ = now;
  changes_.emplace_back(worker, std::move(change));
}

void Roster::agent_came(AgentId agent, int slots, Now now) {
  agents_[agent] = slots;
  fill(now);
}

void Roster::agent_left(AgentId agent, Now now) {
  agents_.erase(agent);
  std::vector<WorkerId> unborn;
  for (const auto& [id, worker] : workers_) {
    if (worker.agent == agent && worker.phase == Phase::kStarting && !worker.connected)
      unborn.push_back(id);
  }
  for (const WorkerId id : unborn) workers_.erase(id);
  if (!agents_.empty()) fill(now);
}

void Roster::worker_started(WorkerId id, AgentId agent, int slot, long pid, Now now) {
  Worker& worker = workers_[id];
  worker.agent = agent;
  worker.slot = slot;
  worker.pid = pid;
  worker.last_sign = now;
  next_worker_ = std::max(next_worker_, id + 1);
}

void Roster::worker_came(WorkerId id, std::uint64_t generation, Now now) {
  Worker& worker = workers_[id];
  worker.connected = true;
  worker.last_sign = now;
  next_worker_ = std::max(next_worker_, id + 1);
  if (generation < generation_ && worker.rank >= 0 && worker.phase == Phase::kRunning) ++refused_;
}

void Roster::beat(WorkerId id, const Beat& beat, Now now) {
  const auto found = workers_.find(id);
  if (found == workers_.end()) return;
  Worker& worker = found->second;
  worker.last_sign = now;
  if (worker.rank >= 0 && beat.generation < generation_) {
    ++refused_;
    return;
  }
  worker.beat = beat;
  for (std::size_t i = 0; i < kSections; ++i) longest_[i] = std::max(longest_[i], beat.longest[i]);
  if (worker.rank < 0 || beat.generation != generation_) return;
  reached_ = std::max(reached_, beat.step);
  if (beat.step > opened_at_) budget_.made_progress();
}

void Roster::ready(WorkerId id, std::uint64_t generation, const Standing& standing,
                   const std::optional<Break>& why, Now now) {
  const auto found = workers_.find(id);
  if (found == workers_.end() || !found->second.doomed.empty()) return;
  Worker& worker = found->second;
  worker.last_sign = now;
  // A member that is ready in an older generation was never told of this one (a coordinator that
  // died between the two): without it this one cannot be.
  const bool never_told =
      worker.rank >= 0 && worker.phase == Phase::kRunning && generation < generation_;
  const bool was_running = worker.phase == Phase::kRunning;
  const bool is_new = worker.phase == Phase::kStarting;
  worker.phase = Phase::kReady;
  worker.standing = standing;
  if (standing.live) {
    reached_ = std::max(reached_, standing.step);
    if (was_running && standing.step > opened_at_) budget_.had_made_progress();
  }
  if (is_new && !first_ && worker.leaving.empty())
    note(id, {.cause = "join", .detail = cat("worker ", id)}, now);
  if (was_running && (why || never_told)) {
    if (!broken_ && changes_.empty()) since_ = now;
    if (never_told)
      note(-1, {.cause = "coordinator", .detail = "it died before all were told"}, now);
    break_generation(never_told ? "a member was never told of it" : why->message, now);
  }
  if (state_ == State::kRunning) {
    was_running ? static_cast<void>(state_ = State::kGathering) : ask_for_change();
  }
  form_if_complete(now);
}

void Roster::break_generation(const std::string& reason, Now now) {
  if (state_ == State::kOver) return;
  state_ = State::kGathering;
  if (broken_) return;
  broken_ = true;
  broken_at_ = now;
  actions_.push_back(AbortGeneration{generation_, running_members(), reason});
}

void Roster::ask_for_change() {
  if (asked_ || state_ != State::kRunning) return;
  asked_ = true;
  actions_.push_back(AskForChange{running_members()});
}

void Roster::lose(WorkerId id, const std::string& detail, Now sign, Now now) {
  Worker& worker = workers_.at(id);
  worker.doomed = "hung";
  note(id,
       {.cause = "hung",
        .rank = worker.rank,
        .detail = detail,
        .detect_ms = milliseconds_of(now - sign)},
       now);
  actions_.push_back(KillWorker{id, detail});
  if (worker.phase == Phase::kRunning && worker.rank >= 0)
    break_generation(cat("rank ", worker.rank, " is lost: ", detail), now);
  form_if_complete(now);
}

void Roster::worker_ended(WorkerId id, const WorkerEnd& end, Now now) {
  const auto found = workers_.find(id);
  if (found == workers_.end() || state_ == State::kOver) return;
  const Worker worker = found->second;
  workers_.erase(found);
  if (worker.phase == Phase::kDone || some_done_) {
    if (worker.phase != Phase::kDone && worker.rank >= 0 && worker.doomed.empty())
      break_generation(cat("rank ", worker.rank, " has ended"), now);
    form_if_complete(now);
    return finish_if_done();
  }
  std::string cause = cause_of(end);
  if (!worker.doomed.empty()) {
    cause = worker.doomed;
    for (auto& [about, change] : changes_) {
      // Silent, and not held by a signal: it could run, and could not be heard.
      if (about != id || !change.detail.starts_with("silent") || end.stopped) continue;
      cause = change.cause = end.dying ? "killed" : "partitioned";
    }
  }
  WorkerEnd charged = end;
  if (charge_of(end) == Charge::kNothing) {
    // Nobody has told it to go.
    charged.exit_code = kExitPeerLost;
    cause = "killed";
  }
  const std::int64_t at =
      worker.failed_at >= 0 ? worker.failed_at : std::max(worker.beat.step, worker.standing.step);
  const Ruling ruling = budget_.failed(charged, at);
  if (!ruling.restart) {
    finish({.exit_code = ruling.exit_code, .worker = id, .cause = cause, .why = ruling.why});
    return;
  }
  if (worker.doomed.empty()) {
    note(id,
         {.cause = cause,
          .rank = worker.rank,
          .detail = detail_of(end),
          .detect_ms = milliseconds_of(now - worker.last_sign)},
         now);
    if (worker.rank >= 0 && worker.phase == Phase::kRunning)
      break_generation(cat("rank ", worker.rank, " has ended (", detail_of(end), ")"), now);
  }
  fill(now, ruling.after);
  form_if_complete(now);
}

void Roster::leaving(WorkerId id, const std::string& cause, Now now) {
  const auto found = workers_.find(id);
  if (found == workers_.end() || !found->second.leaving.empty() || !found->second.doomed.empty())
    return;
  Worker& worker = found->second;
  worker.leaving = cause;
  if (present() == 0 || present() < options_.min_workers) {
    // Nobody would be left to go on: the state is saved instead.
    worker.leaving.clear();
    return stop();
  }
  note(id, {.cause = cause, .rank = worker.rank, .detail = cat("worker ", id)}, now);
  if (cause == "preempted") fill(now);
  if (worker.phase == Phase::kStarting) actions_.push_back(KillWorker{id, cause});
  ask_for_change();
  form_if_complete(now);
}

void Roster::done(WorkerId id, bool finished) {
  const auto found = workers_.find(id);
  if (found == workers_.end()) return;
  found->second.phase = Phase::kDone;
  some_done_ = true;
  some_finished_ = some_finished_ || finished;
  finish_if_done();
}

void Roster::failed(WorkerId id, std::int64_t step) {
  const auto found = workers_.find(id);
  if (found != workers_.end()) found->second.failed_at = step;
}

void Roster::noted(std::uint64_t generation) {
  if (generation != generation_) return;
  unnoted_.clear();
  // They are noted when the first step of the generation is done.
  budget_.made_progress();
}

void Roster::finish_if_done() {
  if (!some_done_) return;
  const bool somebody_trains = std::ranges::any_of(workers_, [](const auto& entry) {
    const Worker& worker = entry.second;
    return worker.doomed.empty() && worker.phase != Phase::kDone &&
           worker.phase != Phase::kStarting && (worker.rank >= 0 || worker.standing.live);
  });
  if (!somebody_trains) finish({.exit_code = some_finished_ ? kExitOk : kExitSaved});
}

void Roster::finish(const Finish& finish) {
  if (state_ == State::kOver) return;
  state_ = State::kOver;
  std::vector<WorkerId> rest;
  for (const auto& [id, worker] : workers_) {
    if (worker.phase == Phase::kDone || !worker.doomed.empty()) continue;
    // Those that are not through their start yet listen to nobody.
    if (worker.phase == Phase::kStarting) {
      actions_.push_back(KillWorker{id, "the run is over"});
    } else {
      rest.push_back(id);
    }
  }
  if (!rest.empty())
    actions_.push_back(AbortGeneration{generation_, rest, "the run is over: " + finish.cause});
  for (const WorkerId id : rest) actions_.push_back(Dismiss{id});
  actions_.push_back(finish);
}

void Roster::resize(int wanted, Now now) {
  options_.workers = wanted;
  std::vector<WorkerId> all;
  for (const auto& [id, worker] : workers_) {
    if (worker.doomed.empty() && worker.leaving.empty() && worker.phase != Phase::kDone)
      all.push_back(id);
  }
  // Those with the highest slots go.
  std::ranges::sort(all, {}, [&](WorkerId id) { return -workers_.at(id).slot; });
  for (std::size_t i = 0; i + static_cast<std::size_t>(wanted) < all.size(); ++i)
    leaving(all[i], "resize", now);
  fill(now);
}

void Roster::resize_without(WorkerId worker, Now now) {
  --options_.workers;
  leaving(worker, "leave", now);
}

void Roster::stop() {
  if (stopping_) return;
  stopping_ = true;
  actions_.push_back(StopAll{running_members()});
}

}  // namespace yoke::elastic
