// Policies by name, and the bound on the blocks of a worker, which memory is made for.

#include "yoke/elastic/placement/make_policy.h"

#include <gmock/gmock.h>

#include "yoke/base/error.h"
#include "yoke/base/random.h"

namespace yoke::elastic {
namespace {

TEST(MakePolicy, EveryNameButTheDynamicIsAPolicyOfThatBound) {
  for (const std::string& name : placement_names()) {
    if (name == kDynamicPlacement) {
      EXPECT_THROW(make_policy(name, 1), ConfigError);
      continue;
    }
    const auto policy = make_policy(name, 1);
    for (const int workers : {1, 2, 3, 8}) {
      for (std::int64_t leaves = 1; leaves <= 130; ++leaves) {
        const RandomKey key = RandomKey(7).with(static_cast<std::uint64_t>(leaves));
        std::vector<Worker> all(static_cast<std::size_t>(workers));
        for (std::size_t i = 0; i < all.size(); ++i) {
          all[i].weight = 1 + static_cast<double>(key.bits(3 * i) % 9);
          all[i].speed = 1 + static_cast<double>(key.bits(3 * i + 1) % 9);
          all[i].load = static_cast<double>(key.bits(3 * i + 2) % 50);
        }
        const auto plan = policy->place(leaves, all, static_cast<std::uint64_t>(leaves));
        EXPECT_LE(plan.most_blocks(), policy->most_blocks(130, workers))
            << name << ", " << leaves << " leaves, " << workers << " workers";
      }
    }
  }
  EXPECT_THROW(make_policy("fair", 1), ConfigError);
}

TEST(Weights, AreNumbersWithCommasBetween) {
  using testing::ElementsAre;
  EXPECT_THAT(weights_from("5, 1,0.5 "), ElementsAre(5, 1, 0.5));
  EXPECT_TRUE(weights_from("").empty());
  for (const char* bad : {"5,x", "5,,1", "-1", "nan", "inf", "1 2", "0, 0", ","}) {
    EXPECT_THROW(weights_from(bad), ConfigError) << bad;
  }
}

}  // namespace
}  // namespace yoke::elastic
