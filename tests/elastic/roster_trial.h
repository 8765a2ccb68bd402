#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "yoke/elastic/roster.h"

namespace yoke::elastic {

inline constexpr WorkerEnd kKilled{.exit_code = 137, .signal = 9};

/// A roster, and workers that do what they are told unless the test says otherwise.
class RosterTest : public testing::Test {
 protected:
  explicit RosterTest(const RosterOptions& options = {.workers = 3}) : roster_(options) {}

  /// The agent comes, its workers start, connect and are ready.
  void begin(int workers = 3) {
    roster_.agent_came(0, workers, now_);
    for (const StartWorker& start : take<StartWorker>()) come(start.worker, start.slot);
    for (const auto& [id, worker] : roster_.workers()) ready(id, {});
    roster_.noted(generation_);
    pass(std::chrono::milliseconds(50));
  }
  void come(WorkerId id, int slot) {
    roster_.worker_started(id, 0, slot, 1000 + id, now_);
    roster_.worker_came(id, 0, now_);
  }
  void ready(WorkerId id, const Standing& standing, const std::optional<Break>& why = {}) {
    roster_.ready(id, generation_, standing, why, now_);
    gather();
  }
  void end(WorkerId id, const WorkerEnd& end = kKilled) {
    roster_.worker_ended(id, end, now_);
    gather();
  }
  void beat(WorkerId id, std::int64_t step, Section section = Section::kCompute,
            Clock::duration in_section = {}) {
    Beat beat{.generation = roster_.generation(), .step = step, .section = section};
    beat.in_section = in_section;
    roster_.beat(id, beat, now_);
  }
  void beat_all(std::int64_t step) {
    for (const auto& [id, worker] : roster_.workers()) beat(id, step);
  }
  void pass(Clock::duration span) {
    for (const auto end = now_ + span; now_ < end;) {
      now_ += std::chrono::milliseconds(50);
      roster_.tick(now_);
    }
    gather();
  }
  /// Time passes for the others too: they beat, except those named.
  void pass_in_compute(Clock::duration span, std::int64_t step, std::vector<WorkerId> silent) {
    for (const auto end = now_ + span; now_ < end;) {
      for (const auto& [id, worker] : roster_.workers()) {
        if (std::ranges::find(silent, id) == silent.end()) beat(id, step);
      }
      now_ += std::chrono::milliseconds(50);
      roster_.tick(now_);
    }
    gather();
  }

  void gather() {
    for (Action& action : roster_.take_actions()) {
      if (const auto* opened = std::get_if<OpenGeneration>(&action)) {
        view_ = *opened;
        generation_ = opened->generation;
      }
      actions_.push_back(std::move(action));
    }
  }
  template <typename Kind>
  std::vector<Kind> take() {
    gather();
    std::vector<Kind> found;
    for (const Action& action : actions_) {
      if (const auto* kind = std::get_if<Kind>(&action)) found.push_back(*kind);
    }
    std::erase_if(actions_,
                  [](const Action& action) { return std::holds_alternative<Kind>(action); });
    return found;
  }
  std::vector<std::string> causes() const {
    std::vector<std::string> all;
    for (const Change& change : view_.changes) all.push_back(change.cause);
    return all;
  }

  Roster roster_;
  Roster::Now now_ = Roster::Now(std::chrono::seconds(1000));
  std::uint64_t generation_ = 0;
  OpenGeneration view_{};
  std::vector<Action> actions_;
};

}  // namespace yoke::elastic
