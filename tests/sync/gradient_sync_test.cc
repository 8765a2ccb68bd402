// Placement cannot change the result: the same bits for every number of ranks, transport, topology,
// bucket size and optimizer, and in the first step those of a plain loop.

#include <gmock/gmock.h>

#include <cstring>

#include "tests/sync/trial.h"

namespace yoke::sync {
namespace {

using comm::Topology;
using comm::TransportKind;
using test::Bits;
using test::Trial;
using test::TrialResult;

void expect_equal(const Bits& found, const Bits& want, const std::string& whose) {
  for (const auto& [name, bytes] : want) {
    ASSERT_TRUE(found.contains(name)) << name << ", " << whose;
    EXPECT_TRUE(found.at(name) == bytes) << name << " differs, " << whose;
  }
  EXPECT_EQ(found.size(), want.size()) << whose;
}

const TrialResult& alone(const std::string& optimizer, std::int64_t leaf) {
  static std::map<std::pair<std::string, std::int64_t>, TrialResult> known;
  const auto [place, is_new] = known.try_emplace({optimizer, leaf});
  if (is_new) place->second = test::run({.optimizer = optimizer, .leaf = leaf}).front();
  return place->second;
}

/// Runs it and compares every rank with one rank alone.
std::vector<TrialResult> expect_as_alone(const Trial& trial) {
  auto results = test::run(trial);
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    const std::string whose =
        "rank " + std::to_string(rank) + " of " + std::to_string(trial.ranks) + " over " +
        comm::name_of(trial.transport) + ", " + comm::name_of(trial.topology) + ", leaf " +
        std::to_string(trial.leaf) + ", " + trial.optimizer;
    expect_equal(results[rank].state, alone(trial.optimizer, trial.leaf).state, whose);
    expect_equal(results[rank].first, alone(trial.optimizer, trial.leaf).first, whose);
  }
  return results;
}

TEST(GradientSync, TheFirstStepIsThatOfAPlainLoop) {
  for (const std::int64_t leaf : {1, 3}) {
    const Bits oracle = test::first_step_alone({.leaf = leaf});
    expect_equal(alone("adamw", leaf).first, oracle, "one rank");
    EXPECT_TRUE(oracle.contains("gradient/twice"));
    EXPECT_FALSE(oracle.contains("gradient/never"));
  }
}

TEST(GradientSync, EveryNumberOfRanksInSharedMemoryIsAsOne) {
  for (const int ranks : {2, 3, 5}) {
    for (const std::int64_t leaf : {1, 3}) {
      const auto results = expect_as_alone({.ranks = ranks, .leaf = leaf});
      EXPECT_TRUE(results[0].state_is_shared);
    }
  }
}

TEST(GradientSync, EveryNumberOfRanksOverTcpIsAsOne) {
  for (const int ranks : {1, 2, 3, 5}) {
    const auto results = expect_as_alone({.ranks = ranks, .transport = TransportKind::kTcp});
    EXPECT_FALSE(results[0].state_is_shared);
  }
  expect_as_alone({.ranks = 2, .transport = TransportKind::kTcp, .leaf = 3});
}

TEST(GradientSync, NamedTopologiesInSharedMemoryKeepPrivateStatesWithTheSameBits) {
  for (const Topology topology : {Topology::kTree, Topology::kFullMesh}) {
    const auto results = expect_as_alone({.ranks = 3, .topology = topology});
    EXPECT_EQ(results[0].state_is_shared, topology == Topology::kFullMesh);
  }
}

TEST(GradientSync, WhoComputesWhatMayBeDecidedInTheStep) {
  for (const auto transport : {TransportKind::kSharedMemory, TransportKind::kTcp}) {
    for (const int ranks : {1, 2, 3}) {
      for (const std::int64_t leaf : {1, 3}) {
        expect_as_alone(
            {.ranks = ranks, .transport = transport, .leaf = leaf, .drawn = true});
      }
    }
  }
}

TEST(GradientSync, BucketSizesAndDelaysChangeNoBit) {
  for (const std::size_t bucket : {std::size_t{1}, std::size_t{1024}, std::size_t{1} << 40}) {
    expect_as_alone(
        {.ranks = 2, .transport = TransportKind::kTcp, .bucket_bytes = bucket, .delays = true});
  }
}

TEST(FlatState, SharedAndPrivateStatesAreEqualForEveryOptimizer) {
  for (const char* optimizer : {"sgd", "adam"}) {
    EXPECT_TRUE(expect_as_alone({.ranks = 3, .optimizer = optimizer})[0].state_is_shared);
    EXPECT_FALSE(
        expect_as_alone({.ranks = 2, .transport = TransportKind::kTcp, .optimizer = optimizer})[0]
            .state_is_shared);
  }
}

std::int64_t integer(const Bits& bits, const std::string& name) {
  std::int64_t value = 0;
  std::memcpy(&value, bits.at(name).data(), sizeof value);
  return value;
}

TEST(FlatState, WhatHadNoGradientIsLeftAlone) {
  const Bits before = test::initial_state();
  for (const int ranks : {1, 3}) {
    for (const char* optimizer : {"adamw", "sgd"}) {  // Both decay weights.
      const Bits after = test::run({.ranks = ranks, .optimizer = optimizer}).back().state;
      for (const char* name : {"never", "frozen"}) {
        EXPECT_TRUE(after.at(std::string("parameters/") + name) ==
                    before.at(std::string("module/") + name))
            << name;
      }
      EXPECT_EQ(integer(after, "optimizer/never/step"), 0);
      EXPECT_FALSE(after.contains("optimizer/frozen/step"));
      EXPECT_EQ(integer(after, "optimizer/twice/step"), 3);
      EXPECT_EQ(integer(after, "optimizer/sometimes/step"), 2) << "not in the step of one";
      for (const auto& [name, bytes] : after) {
        if (!name.starts_with("optimizer/never/")) continue;
        EXPECT_TRUE(std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{}; }));
      }
      EXPECT_FALSE(after.at("parameters/twice") == before.at("module/twice"));
    }
  }
}

TEST(BufferSync, ABufferThatNeverChangedKeepsItsBitsAndRankZerosWin) {
  const Bits before = test::initial_state();
  for (const auto& result : test::run({.ranks = 3})) {
    EXPECT_TRUE(result.state.at("buffers/still") == before.at("module/still"));
    EXPECT_EQ(integer(result.state, "buffers/calls"), integer(before, "module/calls") + 3)
        << "one a step, though every step has many micro-batches";
    for (const char* name : {"mean", "wide_mean", "strided", "still", "calls"}) {
      EXPECT_TRUE(result.state.at(std::string("module/") + name) ==
                  result.state.at(std::string("buffers/") + name))
          << name;
    }
  }
}

// Case 5 of the sharp tests of parallel strategies.
TEST(GradientSync, NothingIsSentBeforeTheLastMicroBatchOfAStep) {
  for (const std::int64_t leaf : {1, 3}) {
    Trial trial{
        .ranks = 2, .transport = TransportKind::kTcp, .bucket_bytes = 1 << 16, .leaf = leaf};
    trial.micro_batches = {8, 8};
    for (const TrialResult& result : test::run(trial)) {
      EXPECT_THAT(result.sent_before_last, testing::ElementsAre(0, 0));
      EXPECT_GT(result.sent[0], 2);
      EXPECT_EQ(result.sent[0], result.sent[1]) << "one call a bucket and step";
    }
    trial.transport = TransportKind::kSharedMemory;
    for (const TrialResult& result : test::run(trial))
      EXPECT_THAT(result.sent, testing::ElementsAre(0, 0));
  }
}

}  // namespace
}  // namespace yoke::sync
