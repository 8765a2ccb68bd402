#include "yoke/net/tcp/call_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace yoke::net {
namespace {

constexpr std::uint8_t kAllReduce = 0, kBroadcast = 4, kBarrier = 8, kSend = 9;
using Answers = std::vector<std::optional<CallTag>>;

CallTag call(std::uint8_t operation, std::uint64_t sequence) {
  return {.sequence = sequence, .operation = operation};
}

TEST(CallLog, EqualCallsAndSilenceAreNoDisagreement) {
  CallLog log;
  EXPECT_FALSE(log.disagreement(0, Answers{{}, call(kBarrier, 7)}));
  log.note(call(kBarrier, 7));
  EXPECT_FALSE(log.disagreement(0, Answers{{}, {}, call(kBarrier, 7)}));
  EXPECT_FALSE(log.disagreement(0, Answers{{}, call(kAllReduce, 8)})) << "it is ahead";
  EXPECT_FALSE(log.disagreement(0, Answers{{}, call(kAllReduce, 6)})) << "6 is not known here";
}

TEST(CallLog, TheOtherOfTwoIsNamed) {
  CallLog log;
  log.note(call(kBarrier, 7));
  const auto found = log.disagreement(0, Answers{{}, call(kBroadcast, 7)});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 1);
  EXPECT_THAT(found->text(), testing::AllOf(testing::HasSubstr("rank 1 called broadcast #7"),
                                            testing::HasSubstr("rank 0 called barrier #7")));
}

TEST(CallLog, TheOddOneOfManyIsNamedEvenIfItIsThisRank) {
  CallLog log;
  log.note(call(kAllReduce, 3));
  const Answers one_differs{{}, call(kAllReduce, 3), call(kBarrier, 3), call(kAllReduce, 3)};
  EXPECT_EQ(log.disagreement(0, one_differs)->rank, 2);
  const Answers all_differ{{}, call(kBarrier, 3), call(kBarrier, 3)};
  const auto found = log.disagreement(0, all_differ);
  EXPECT_EQ(found->rank, 0);
  EXPECT_EQ(found->other, 1);
}

TEST(CallLog, ARankThatIsBehindInAnotherCallIsFound) {
  CallLog log;
  for (std::uint64_t i = 0; i < 10; ++i) log.note(call(kAllReduce, i));
  const auto found = log.disagreement(0, Answers{{}, call(kBarrier, 6)});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->others_call, call(kAllReduce, 6));
}

TEST(CallLog, MessagesBetweenTwoAreCountedApart) {
  CallLog log;
  log.note(call(kBarrier, 7));
  log.note(call(kSend, 2));
  EXPECT_FALSE(log.disagreement(0, Answers{{}, call(kSend, 7)}));
  EXPECT_TRUE(log.disagreement(0, Answers{{}, call(kBroadcast, 7)}));
}

}  // namespace
}  // namespace yoke::net
