#include "yoke/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/exit_code.h"

namespace yoke {
namespace {

using testing::HasSubstr;

TEST(Ensure, PrintsBothOperandsTheRuleAndThePlace) {
  const int left = 3;
  try {
    YOKE_ENSURE_EQ(left, 4, "Buckets must tile the arena.");
    FAIL() << "3 is 4";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("left 3, right 4"));
    EXPECT_THAT(error.what(), HasSubstr("(left) == (4)"));
    EXPECT_THAT(error.what(), HasSubstr("error_test.cc:"));
    EXPECT_THAT(error.what(), HasSubstr("Buckets must tile the arena."));
  }
}

TEST(Ensure, BuildsItsMessageOnlyWhenItFails) {
  int built = 0;
  const auto message = [&] { return ++built; };
  YOKE_ENSURE(true, message());
  EXPECT_EQ(built, 0);
}

TEST(ExitCodes, AreThoseOfTheTable) {
  EXPECT_EQ(exit_code_of(UsageError("")), 2);
  EXPECT_EQ(exit_code_of(DataError("")), 65);
  EXPECT_EQ(exit_code_of(InternalError("")), 70);
  EXPECT_EQ(exit_code_of(ResourceError("")), 71);
  EXPECT_EQ(exit_code_of(std::bad_alloc()), 71);
  EXPECT_EQ(exit_code_of(IoError("")), 74);
  EXPECT_EQ(exit_code_of(CheckpointError("")), 74);
  EXPECT_EQ(exit_code_of(CommunicationError("")), 76);
  EXPECT_EQ(exit_code_of(PeerLost(1, "")), 76);
  EXPECT_EQ(exit_code_of(Timeout("all-reduce", {1, 2}, "")), 76);
  EXPECT_EQ(exit_code_of(CollectiveMismatch(1, "")), 76);
  EXPECT_EQ(exit_code_of(Aborted(3, "")), 76);
  EXPECT_EQ(exit_code_of(JoinRefused("")), 76);
  EXPECT_EQ(exit_code_of(ConfigError("")), 78);
  EXPECT_EQ(exit_code_of(Error("")), 1);
  EXPECT_EQ(exit_code_of(std::runtime_error("")), 1);
}

}  // namespace
}  // namespace yoke
