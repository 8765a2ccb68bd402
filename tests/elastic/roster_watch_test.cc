// Who is declared lost, and when: silence and lack of progress, with a clock of the test's own.
#include "tests/elastic/roster_trial.h"

#include <gmock/gmock.h>

namespace yoke::elastic {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

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

}  // namespace
}  // namespace yoke::elastic
