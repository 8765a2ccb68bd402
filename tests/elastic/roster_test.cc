// The decisions of a coordinator, with a clock of the test's own: who comes, goes and is replaced.
#include "tests/elastic/roster_trial.h"

#include <gmock/gmock.h>

#include "yoke/base/exit_code.h"

namespace yoke::elastic {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

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
