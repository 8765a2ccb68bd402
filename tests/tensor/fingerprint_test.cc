// Workers that would not compute the same bits are refused, on every rank, with both sides named.

#include "yoke/tensor/fingerprint.h"

#include <gmock/gmock.h>

#include <array>

#include "tests/support/captured_stderr.h"
#include "tests/support/spawn_ranks.h"
#include "yoke/base/error.h"

namespace yoke::tensor {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Fingerprint, IsTheSameTwiceAndDependsOnThreadsAndPlanAlone) {
  const Fingerprint one = fingerprint(1, "batch = 64");
  EXPECT_EQ(one.text(), fingerprint(1, "batch = 64").text());
  EXPECT_EQ(differences(one, one.text(), "on rank 1"), "");
  const std::string other = differences(one, fingerprint(2, "batch = 32").text(), "on rank 1");
  EXPECT_THAT(other, AllOf(HasSubstr("threads: here 1, on rank 1 2"), HasSubstr("plan: here ")));
  for (const char* same : {"build", "libtorch", "processor", "instructions", "probe"}) {
    EXPECT_TRUE(one.parts.contains(same)) << same;
    EXPECT_THAT(other, Not(HasSubstr(same)));
  }
}

TEST(Fingerprint, APartThatOneSideLacksIsADifference) {
  const Fingerprint mine{{{"build", "1"}, {"probe", "p"}}};
  EXPECT_EQ(differences(mine, "build: 1\n", "on rank 2"), "probe: here p, on rank 2 (none)");
  EXPECT_EQ(differences(mine, "build: 1\nprobe: p\nx: y\n", "on rank 2"),
            "x: here (none), on rank 2 y");
}

Fingerprint with_threads(int threads) {
  return {{{"build", "yoke"}, {"threads", std::to_string(threads)}, {"plan", "p"}}};
}

TEST(Fingerprint, EqualOnesPass) {
  test::run_threads(3, [](World world) {
    auto communicator = comm::Communicator::create(world);
    EXPECT_TRUE(agree_on_fingerprint(world, *communicator, with_threads(1), false));
    EXPECT_TRUE(agree_on_fingerprint(world, *communicator, with_threads(1), true));
  });
}

TEST(Fingerprint, OneThatDiffersIsRefusedOnEveryRank) {
  for (const int odd : {0, 1, 3}) {
    std::array<std::string, 4> said;
    test::run_threads(4, [&](World world) {
      auto communicator = comm::Communicator::create(world);
      const int me = world.rank();
      try {
        agree_on_fingerprint(world, *communicator, with_threads(me == odd ? 2 : 1), false);
      } catch (const JoinRefused& error) {
        said[me] = error.what();
      }
    });
    // Rank 0 is who the others are compared with: if it is the odd one, rank 1 is the first to
    // differ.
    const int other = odd == 0 ? 1 : odd;
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_THAT(said[rank], AllOf(HasSubstr("rank 0"), HasSubstr("rank " + std::to_string(other)),
                                    HasSubstr("threads: "), HasSubstr("train.mixed")))
          << "on rank " << rank << ", odd " << odd;
      EXPECT_THAT(said[rank], Not(HasSubstr("plan: "))) << "the plans are equal";
    }
  }
}

TEST(Fingerprint, SeveralThatDifferAreAllRefused) {
  std::array<bool, 4> refused{};
  test::run_threads(4, [&](World world) {
    auto communicator = comm::Communicator::create(world);
    try {
      agree_on_fingerprint(world, *communicator, with_threads(world.rank()), false);
    } catch (const JoinRefused&) {
      refused[world.rank()] = true;
    }
  });
  EXPECT_EQ(refused, (std::array<bool, 4>{true, true, true, true}));
}

TEST(Fingerprint, MixedGoesOnWithAWarning) {
  const test::CapturedStderr log;
  test::run_threads(3, [](World world) {
    auto communicator = comm::Communicator::create(world);
    EXPECT_FALSE(
        agree_on_fingerprint(world, *communicator, with_threads(world.rank() == 2 ? 2 : 1), true));
    communicator->barrier();
  });
  EXPECT_THAT(log.text(), AllOf(HasSubstr("threads: "), HasSubstr("promise of equal bits is off")));
}

}  // namespace
}  // namespace yoke::tensor
