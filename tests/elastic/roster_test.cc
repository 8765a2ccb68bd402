// The decisions of a coordinator, with a clock of the test's own.
#include "yoke/elastic/roster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/exit_code.h"

namespace yoke::elastic {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr WorkerEnd kKilled{.exit_code = 137, .signal = 9};

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
    pass(milliseconds(50));
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
      now_ += milliseconds(50);
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
      now_ += milliseconds(50);
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
  Roster::Now now_ = Roster::Now(seconds(1000));
  std::uint64_t generation_ = 0;
  OpenGeneration view_{};
  std::vector<Action> actions_;
};

TEST_F(RosterTest, TheFirstGenerationWaitsForAll) {
  roster_.agent_came(0, 3, now_);
  const auto starts = take<StartWorker>();
  ASSERT_EQ(starts.size(), 3u);
  for (const StartWorker& start : starts) come(start.worker, start.slot);
  ready(0, {});
  ready(2, {});
  EXPECT_EQ(roster_.generation(), 0u);
  ready(1, {});
  EXPECT_EQ(roster_.generation(), 1u);
  EXPECT_THAT(view_.members, ElementsAre(0, 1, 2));
  EXPECT_FALSE(view_.anyone_live);
  EXPECT_EQ(view_.reached, -1) << "nothing was ever done";
  EXPECT_THAT(causes(), ElementsAre("start"));
}

TEST_F(RosterTest, SurvivorsOfADeathGoOnAtOnceAndTheNewWorkerJoinsLater) {
  begin();
  beat_all(10);
  end(1);
  const auto aborts = take<AbortGeneration>();
  ASSERT_EQ(aborts.size(), 1u);
  EXPECT_EQ(aborts[0].generation, 1u);
  EXPECT_THAT(aborts[0].workers, ElementsAre(0, 2));
  ready(0, {.live = true, .step = 10}, Break{});
  EXPECT_EQ(roster_.generation(), 1u) << "rank 2 lives, and is not there yet";
  ready(2, {.live = true, .step = 11}, Break{});
  EXPECT_EQ(roster_.generation(), 2u) << "nobody waits for the new worker";
  EXPECT_THAT(view_.members, ElementsAre(2, 0)) << "rank 0 holds the newest state";
  EXPECT_TRUE(view_.anyone_live);
  EXPECT_EQ(view_.reached, 11);
  EXPECT_THAT(causes(), ElementsAre("killed"));
  EXPECT_EQ(view_.changes[0].rank, 1);

  const auto starts = take<StartWorker>();
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_EQ(starts[0].slot, 1) << "in the place of the dead one";
  EXPECT_EQ(starts[0].after, Clock::duration::zero());
  roster_.noted(2);
  come(starts[0].worker, 1);
  ready(starts[0].worker, {});
  EXPECT_EQ(take<AskForChange>().size(), 1u);
  EXPECT_EQ(roster_.generation(), 2u) << "the others finish their step first";
  ready(0, {.live = true, .step = 15});
  ready(2, {.live = true, .step = 15});
  EXPECT_EQ(roster_.generation(), 3u);
  EXPECT_THAT(view_.members, ElementsAre(0, starts[0].worker, 2));
  EXPECT_THAT(causes(), ElementsAre("join"));
}

TEST_F(RosterTest, WhatIsNotOnFileIsToldAgain) {
  begin();
  beat_all(10);
  end(1);
  ready(0, {.live = true, .step = 10}, Break{});
  ready(2, {.live = true, .step = 10}, Break{});
  end(2);
  ready(0, {.live = true, .step = 10}, Break{});
  EXPECT_THAT(causes(), ElementsAre("killed", "killed")) << "the first died with its generation";
}

TEST_F(RosterTest, SilenceIsDeathAfterTheLease) {
  begin();
  beat_all(3);
  pass_in_compute(milliseconds(1900), 3, {1});
  EXPECT_THAT(take<KillWorker>(), IsEmpty());
  pass_in_compute(milliseconds(300), 3, {1});
  const auto kills = take<KillWorker>();
  ASSERT_EQ(kills.size(), 1u);
  EXPECT_EQ(kills[0].worker, 1);
  ready(0, {.live = true, .step = 3}, Break{});
  ready(2, {.live = true, .step = 3}, Break{});
  EXPECT_EQ(roster_.generation(), 1u)
      << "it may share memory with them, and wake up: not before it is dead";
  end(1, {.exit_code = 137, .signal = 9, .stopped = true});
  EXPECT_EQ(roster_.generation(), 2u);
  EXPECT_THAT(causes(), ElementsAre("hung"));
  EXPECT_GE(view_.changes[0].detect_ms, 2000);
}

TEST_F(RosterTest, ASilentWorkerThatWasNotStoppedWasCutOff) {
  begin();
  beat_all(3);
  pass_in_compute(milliseconds(2200), 3, {1});
  ready(0, {.live = true, .step = 3}, Break{});
  ready(2, {.live = true, .step = 3}, Break{});
  end(1);
  EXPECT_THAT(causes(), ElementsAre("partitioned"));
}

TEST_F(RosterTest, ACoordinatorThatDidNotRunBlamesNobody) {
  begin();
  beat_all(3);
  now_ += seconds(30);
  roster_.tick(now_);
  pass(milliseconds(1500));
  EXPECT_THAT(take<KillWorker>(), IsEmpty());
}

TEST_F(RosterTest, ALiveThreadDoesNotHideAStuckOne) {
  begin();
  for (int i = 0; i < 10; ++i) {
    Beat beat{.generation = 1, .step = i};
    beat.longest[static_cast<std::size_t>(Section::kCompute)] = milliseconds(1500);
    for (const WorkerId id : {0, 1, 2}) roster_.beat(id, beat, now_);
  }
  // Ten times the longest stay so far is more than the floor of ten seconds.
  Clock::duration stay{};
  while (stay < seconds(20) && take<KillWorker>().empty()) {
    beat(0, 10, Section::kCommunicate, stay);
    beat(1, 10, Section::kCompute, stay);
    beat(2, 10, Section::kCommunicate, stay);
    now_ += milliseconds(50);
    stay += milliseconds(50);
    roster_.tick(now_);
  }
  EXPECT_GE(stay, seconds(15));
  EXPECT_LE(stay, seconds(16));
  EXPECT_THAT(roster_.workers().at(1).doomed, "hung");
  EXPECT_THAT(roster_.workers().at(0).doomed, IsEmpty()) << "who waits for it is not to blame";
}

TEST_F(RosterTest, ASlowSectionThatWasNeverSeenBeforeIsGivenTime) {
  begin();
  Clock::duration stay{};
  for (; stay < seconds(60); stay += milliseconds(50)) {
    for (const WorkerId id : {0, 1, 2}) beat(id, 0, Section::kData, stay);
    now_ += milliseconds(50);
    roster_.tick(now_);
  }
  EXPECT_THAT(take<KillWorker>(), IsEmpty());
}

TEST_F(RosterTest, WhoDoesNotLeaveAnAbortedCollectiveIsStuck) {
  begin();
  beat_all(3);
  ready(0, {.live = true, .step = 3}, Break{});
  ready(2, {.live = true, .step = 3}, Break{});
  for (Clock::duration stay{}; stay < seconds(3); stay += milliseconds(50)) {
    for (const WorkerId id : {0, 2}) beat(id, 3, Section::kWait);
    beat(1, 3, Section::kCommunicate, seconds(5) + stay);
    now_ += milliseconds(50);
    roster_.tick(now_);
  }
  const auto kills = take<KillWorker>();
  ASSERT_EQ(kills.size(), 1u);
  EXPECT_EQ(kills[0].worker, 1);
}

TEST_F(RosterTest, RanksThatLostEachOtherMeetAgain) {
  begin();
  beat_all(3);
  for (const WorkerId id : {0, 1, 2}) ready(id, {.live = true, .step = 4}, Break{});
  EXPECT_EQ(roster_.generation(), 2u);
  EXPECT_THAT(causes(), ElementsAre("partitioned"));
  EXPECT_EQ(take<StartWorker>().size(), 0u);
}

TEST_F(RosterTest, WithoutProgressTheRunEndsAndSaysDoNotRestart) {
  begin();
  beat_all(3);
  for (int i = 0; i < 4; ++i) {
    for (const WorkerId id : {0, 1, 2}) ready(id, {.live = true, .step = 3}, Break{});
  }
  const auto ends = take<Finish>();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].exit_code, kExitDoNotRestart);
}

TEST_F(RosterTest, AllDeadMeansAllNewOnesAreWaitedFor) {
  begin();
  beat_all(20);
  for (const WorkerId id : {0, 1, 2}) end(id);
  const auto starts = take<StartWorker>();
  ASSERT_EQ(starts.size(), 3u);
  for (const StartWorker& start : starts) come(start.worker, start.slot);
  ready(3, {});
  ready(4, {});
  EXPECT_EQ(roster_.generation(), 1u);
  ready(5, {});
  EXPECT_EQ(roster_.generation(), 2u);
  EXPECT_FALSE(view_.anyone_live);
  EXPECT_EQ(view_.reached, 20) << "what was lost is known";
}

class RosterOfAtLeastTwo : public RosterTest {
 protected:
  RosterOfAtLeastTwo() : RosterTest({.workers = 3, .min_workers = 2}) {}
};

TEST_F(RosterOfAtLeastTwo, PausesBelowTheLeastAndGoesOnWhenOneComes) {
  begin();
  beat_all(5);
  end(0);
  end(1);
  ready(2, {.live = true, .step = 5}, Break{});
  EXPECT_EQ(roster_.generation(), 1u);
  const auto starts = take<StartWorker>();
  ASSERT_EQ(starts.size(), 2u);
  come(starts[0].worker, starts[0].slot);
  ready(starts[0].worker, {});
  EXPECT_EQ(roster_.generation(), 2u);
  EXPECT_EQ(view_.members.size(), 2u);
  EXPECT_EQ(view_.members[0], 2);
}

TEST_F(RosterTest, APreemptedWorkerIsReplacedAndCostsNoBudget) {
  begin();
  beat_all(5);
  roster_.leaving(1, "preempted", now_);
  EXPECT_EQ(take<StartWorker>().size(), 1u);
  EXPECT_EQ(take<AskForChange>().size(), 1u);
  for (const WorkerId id : {0, 1, 2}) ready(id, {.live = true, .step = 6});
  EXPECT_EQ(roster_.generation(), 2u);
  EXPECT_THAT(view_.members, ElementsAre(0, 2));
  const auto dismissed = take<Dismiss>();
  ASSERT_EQ(dismissed.size(), 1u);
  EXPECT_EQ(dismissed[0].worker, 1);
  EXPECT_THAT(causes(), ElementsAre("preempted"));
  end(1, {.exit_code = kExitSaved});
  EXPECT_THAT(take<Finish>(), IsEmpty());
}

TEST_F(RosterTest, TheLastWorkerDoesNotLeaveButSaves) {
  begin();
  roster_.leaving(0, "leave", now_);
  roster_.leaving(1, "leave", now_);
  EXPECT_THAT(take<StopAll>(), IsEmpty());
  roster_.leaving(2, "preempted", now_);
  EXPECT_EQ(take<StopAll>().size(), 1u);
}

TEST_F(RosterTest, ResizeStartsAndDismisses) {
  begin();
  beat_all(5);
  roster_.resize(5, now_);
  const auto starts = take<StartWorker>();
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(starts[0].slot, 3);
  EXPECT_EQ(starts[1].slot, 4);
  for (const StartWorker& start : starts) {
    come(start.worker, start.slot);
    ready(start.worker, {});
  }
  for (const WorkerId id : {0, 1, 2}) ready(id, {.live = true, .step = 6});
  EXPECT_EQ(view_.members.size(), 5u);
  roster_.resize(2, now_);
  for (const WorkerId id : {0, 1, 2, 3, 4}) ready(id, {.live = true, .step = 9});
  EXPECT_THAT(view_.members, ElementsAre(0, 1)) << "those with the highest slots have gone";
  EXPECT_EQ(take<Dismiss>().size(), 3u);
}

TEST_F(RosterTest, TheRunIsOverWhenItsWorkersAreDone) {
  begin();
  roster_.done(0, true);
  roster_.done(1, true);
  end(0, {});
  end(2);  // Killed after it had done its part.
  const auto ends = take<Finish>();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].exit_code, 0);
  EXPECT_THAT(take<StartWorker>(), IsEmpty());
}

TEST_F(RosterTest, BadDataEndsTheRunWithItsCodeAndDismissesTheOthers) {
  begin();
  end(1, {.exit_code = kExitData});
  const auto ends = take<Finish>();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].exit_code, kExitData);
  EXPECT_EQ(ends[0].worker, 1);
  EXPECT_EQ(ends[0].cause, "user_error");
  EXPECT_EQ(take<Dismiss>().size(), 2u);
}

TEST_F(RosterTest, LowerGenerationsAreRefusedAndCounted) {
  begin();
  beat_all(5);
  end(1);
  ready(0, {.live = true, .step = 5}, Break{});
  ready(2, {.live = true, .step = 5}, Break{});
  const Beat old{.generation = 1, .step = 99};
  roster_.beat(0, old, now_);
  EXPECT_EQ(roster_.refused(), 1u);
  EXPECT_EQ(roster_.reached(), 5);
}

TEST_F(RosterTest, ARestartedCoordinatorDisturbsNobodyWhoComesBack) {
  Roster again({.workers = 3}, 7, 12);
  again.recover({9, 10, 11}, 3, 40, now_);
  again.agent_came(0, 3, now_);
  for (const WorkerId id : {9, 10, 11}) {
    again.worker_started(id, 0, static_cast<int>(id - 9), 5, now_);
    again.worker_came(id, 7, now_);
  }
  for (int i = 0; i < 100; ++i) {
    for (const WorkerId id : {9, 10, 11}) again.beat(id, {.generation = 7, .step = 41}, now_);
    now_ += milliseconds(50);
    again.tick(now_);
  }
  EXPECT_THAT(again.take_actions(), IsEmpty());
  EXPECT_EQ(again.generation(), 7u);
}

TEST_F(RosterTest, ARestartedCoordinatorMissesWhoDoesNotComeBack) {
  Roster again({.workers = 2}, 7, 12);
  again.recover({9, 10}, 2, 40, now_);
  again.agent_came(0, 2, now_);
  again.worker_started(9, 0, 0, 5, now_);
  again.worker_came(9, 7, now_);
  for (int i = 0; i < 60; ++i) {
    again.beat(9, {.generation = 7, .step = 41}, now_);
    now_ += milliseconds(50);
    again.tick(now_);
  }
  bool aborted = false;
  for (const Action& action : again.take_actions())
    aborted = aborted || std::holds_alternative<AbortGeneration>(action);
  EXPECT_TRUE(aborted);
}

TEST_F(RosterTest, AMemberThatWasNeverToldOfItsGenerationBreaksIt) {
  Roster again({.workers = 2}, 8, 12);
  again.recover({9, 10}, 2, 40, now_);
  again.agent_came(0, 2, now_);
  for (const WorkerId id : {9, 10}) again.worker_started(id, 0, static_cast<int>(id - 9), 5, now_);
  // The coordinator died when it had journaled generation 8 and told nobody.
  for (const WorkerId id : {9, 10}) {
    again.worker_came(id, 7, now_);
    again.ready(id, 7, {.live = true, .step = 40}, {}, now_);
  }
  EXPECT_EQ(again.generation(), 9u);
}

}  // namespace
}  // namespace yoke::elastic
