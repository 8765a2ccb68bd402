#include "yoke/data/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "yoke/base/error.h"

namespace yoke::data {
namespace {

std::vector<std::int64_t> indices_of_step(const GlobalSampler& sampler, std::int64_t step) {
  std::vector<std::int64_t> all;
  for (std::int64_t v = 0; v < sampler.micro_batches(step); ++v) {
    auto part = sampler.indices(step, v);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::vector<std::int64_t> indices_of_epoch(const GlobalSampler& sampler, std::int64_t epoch) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < sampler.steps_per_epoch(); ++i) {
    auto part = indices_of_step(sampler, epoch * sampler.steps_per_epoch() + i);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::vector<std::int64_t> counting(std::int64_t n) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(GlobalSampler, GivesEverySampleOnceAnEpochWhateverTheSizes) {
  for (std::int64_t samples : {1, 2, 7, 64, 101}) {
    for (std::int64_t batch : {1, 3, 8, 64, 200}) {
      for (std::int64_t micro_batch : {1, 2, 5, 8, 300}) {
        GlobalSampler sampler(
            {.samples = samples, .batch = batch, .micro_batch = micro_batch, .seed = 4});
        for (std::int64_t epoch : {0, 1, 5}) {
          auto all = indices_of_epoch(sampler, epoch);
          std::sort(all.begin(), all.end());
          ASSERT_EQ(all, counting(samples))
              << samples << " samples, batch " << batch << ", micro " << micro_batch;
        }
      }
    }
  }
}

TEST(GlobalSampler, CountsAsTheFormulaSays) {
  for (std::int64_t samples : {5, 12, 13}) {
    for (std::int64_t batch : {1, 4, 5, 20}) {
      for (std::int64_t micro_batch : {1, 2, 3, 30}) {
        GlobalSampler sampler({.samples = samples, .batch = batch, .micro_batch = micro_batch});
        std::int64_t steps = (samples + batch - 1) / batch;
        ASSERT_EQ(sampler.steps_per_epoch(), steps);
        std::int64_t most = 0;
        for (std::int64_t step = 0; step < 3 * steps; ++step) {
          std::int64_t i = step % steps;
          std::int64_t expected = std::min((i + 1) * batch, samples) - i * batch;
          ASSERT_EQ(sampler.samples_of_step(step), expected);
          ASSERT_EQ(sampler.micro_batches(step), (expected + micro_batch - 1) / micro_batch);
          most = std::max(most, sampler.micro_batches(step));
          std::int64_t next = i * batch;
          for (std::int64_t v = 0; v < sampler.micro_batches(step); ++v) {
            auto at = sampler.positions(step, v);
            ASSERT_EQ(at.epoch, step / steps);
            ASSERT_EQ(at.first, next);
            next += at.count;
            bool last = v + 1 == sampler.micro_batches(step);
            ASSERT_TRUE(last ? at.count >= 1 && at.count <= micro_batch : at.count == micro_batch);
          }
          ASSERT_EQ(next, std::min((i + 1) * batch, samples));
        }
        ASSERT_EQ(sampler.most_micro_batches(), most);
      }
    }
  }
}

TEST(GlobalSampler, IsPure) {
  GlobalSampler::Options options{.samples = 50, .batch = 16, .micro_batch = 4, .seed = 9};
  GlobalSampler forward(options), backward(options);
  std::vector<std::vector<std::int64_t>> steps;
  for (std::int64_t step = 0; step < 12; ++step) steps.push_back(indices_of_step(forward, step));
  for (std::int64_t step = 11; step >= 0; --step) {
    EXPECT_EQ(indices_of_step(backward, step), steps[static_cast<std::size_t>(step)]) << step;
  }
}

TEST(GlobalSampler, TheStepDoesNotDependOnTheMicroBatch) {
  GlobalSampler whole({.samples = 50, .batch = 16, .micro_batch = 16, .seed = 9});
  GlobalSampler parts({.samples = 50, .batch = 16, .micro_batch = 3, .seed = 9});
  for (std::int64_t step = 0; step < 8; ++step)
    EXPECT_EQ(indices_of_step(whole, step), indices_of_step(parts, step));
}

TEST(GlobalSampler, ShufflesAnewForEachEpochAndSeed) {
  GlobalSampler one({.samples = 100, .batch = 100, .micro_batch = 100, .seed = 1});
  GlobalSampler two({.samples = 100, .batch = 100, .micro_batch = 100, .seed = 2});
  EXPECT_NE(one.indices(0, 0), one.indices(1, 0));
  EXPECT_NE(one.indices(0, 0), two.indices(0, 0));
  EXPECT_NE(one.indices(0, 0), counting(100));
}

TEST(GlobalSampler, KeepsTheOrderForEvaluation) {
  GlobalSampler sampler({.samples = 11, .batch = 4, .micro_batch = 3, .shuffle = false});
  EXPECT_EQ(indices_of_epoch(sampler, 0), counting(11));
  EXPECT_EQ(indices_of_epoch(sampler, 3), counting(11));
}

TEST(GlobalSampler, DropsAShortBatchWhenAsked) {
  GlobalSampler sampler({.samples = 11, .batch = 4, .micro_batch = 3, .drop_last = true});
  EXPECT_EQ(sampler.steps_per_epoch(), 2);
  auto all = indices_of_epoch(sampler, 0);
  EXPECT_EQ(all.size(), 8u);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
  EXPECT_EQ(sampler.positions(2, 0).epoch, 1);
}

TEST(GlobalSampler, AnswersManyThreadsAtOnce) {
  GlobalSampler sampler({.samples = 500, .batch = 100, .micro_batch = 10, .seed = 3});
  std::vector<std::vector<std::int64_t>> expected;
  for (std::int64_t step = 0; step < 20; ++step) expected.push_back(sampler.indices(step, 1));
  std::vector<int> wrong(4, 0);
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        for (int round = 0; round < 50; ++round) {
          std::int64_t step = (round * 7 + thread * 5) % 20;
          wrong[thread] += sampler.indices(step, 1) != expected[static_cast<std::size_t>(step)];
        }
      });
    }
  }
  EXPECT_THAT(wrong, testing::Each(0));
}

TEST(GlobalSampler, RefusesWhatCannotBeRight) {
  using Options = GlobalSampler::Options;
  auto refused = [](const Options& options) {
    try {
      GlobalSampler sampler(options);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  using testing::HasSubstr;
  EXPECT_THAT(refused({.samples = 0, .batch = 1, .micro_batch = 1}), HasSubstr("no samples"));
  EXPECT_THAT(refused({.samples = 1, .batch = 0, .micro_batch = 1}), HasSubstr("train.batch"));
  EXPECT_THAT(refused({.samples = 1, .batch = 1, .micro_batch = -2}),
              HasSubstr("train.micro_batch"));
  EXPECT_THAT(refused({.samples = 3, .batch = 4, .micro_batch = 1, .drop_last = true}),
              HasSubstr("drop_last"));
  GlobalSampler sampler({.samples = 5, .batch = 4, .micro_batch = 2});
  EXPECT_THROW(sampler.positions(-1, 0), InternalError);
  EXPECT_THROW(sampler.positions(0, 2), InternalError);
  EXPECT_THROW(sampler.indices(1, 1), InternalError);
}

}  // namespace
}  // namespace yoke::data
