#include "yoke/base/did_you_mean.h"

#include <gtest/gtest.h>

namespace yoke {
namespace {

const std::vector<std::string> kWords = {"optimizer.lr", "optimizer.name", "train.steps", "lr",
                                         "sgd"};

TEST(DidYouMean, FindsTypingErrors) {
  EXPECT_EQ(did_you_mean("optimiser.lr", kWords), "optimizer.lr") << "another letter";
  EXPECT_EQ(did_you_mean("optimizer.nmae", kWords), "optimizer.name") << "a swap";
  EXPECT_EQ(did_you_mean("train.step", kWords), "train.steps") << "a letter short";
  EXPECT_EQ(did_you_mean("train.steeps", kWords), "train.steps") << "a letter more";
  EXPECT_EQ(did_you_mean("TRAIN.STEPS", kWords), "train.steps") << "another case";
  EXPECT_EQ(did_you_mean("lrr", kWords), "lr");
}

TEST(DidYouMean, IsSilentAboutStrangers) {
  EXPECT_EQ(did_you_mean("momentum", kWords), std::nullopt);
  EXPECT_EQ(did_you_mean("", kWords), std::nullopt);
  EXPECT_EQ(did_you_mean("xy", kWords), std::nullopt);
  EXPECT_EQ(did_you_mean("sgd", {}), std::nullopt);
  EXPECT_EQ(did_you_mean(std::string(1000000, 'a'), {std::string(1000000, 'b')}), std::nullopt);
}

TEST(DidYouMean, PrefersTheNearestThenTheFirst) {
  EXPECT_EQ(did_you_mean("abcd", {"abxx", "abcx", "abcy"}), "abcx");
}

}  // namespace
}  // namespace yoke
