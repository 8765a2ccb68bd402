// The folder and the schedule of leaves give, for every number of leaves and ranks and whatever is
// absent, the bits of a recursive sum of ten lines.

#include "yoke/sync/gradient_folder.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <random>

#include "tests/sync/canonical_sum.h"
#include "yoke/base/error.h"
#include "yoke/tensor/bridge.h"

namespace yoke::sync {
namespace {

using tensor::ArenaLayout;
using test::Gradient;

ArenaLayout::Entry entry(std::size_t elements, DType dtype) {
  ArenaLayout::Entry entry;
  entry.name = cat("t", elements);
  entry.shape = {static_cast<std::int64_t>(elements)};
  entry.dtype = dtype;
  entry.elements = elements;
  return entry;
}

const ArenaLayout& layout() {
  static const ArenaLayout layout({entry(1, DType::kFloat32), entry(1030, DType::kFloat32),
                                   entry(7, DType::kFloat64), entry(0, DType::kFloat32)});
  return layout;
}

/// A gradient whose elements differ so much in size that every other order of sums shows.
template <typename T>
std::vector<T> draw(std::size_t elements, std::uint64_t v, std::size_t tensor) {
  std::minstd_rand random(static_cast<unsigned>(1 + v * 64 + tensor));
  std::vector<T> values(elements);
  for (T& value : values) {
    value = std::ldexp(static_cast<T>(static_cast<std::int64_t>(random()) - (1 << 30)),
                       static_cast<int>(random() % 12));
  }
  return values;
}

struct Case {
  std::int64_t leaves;
  int ranks;
  std::int64_t per_leaf;
  std::vector<std::vector<bool>> present;  ///< [micro-batch][tensor]
  bool scattered = false;                  ///< leaves that lie together go to different ranks
};

/// Leaf v to rank v mod ranks, but for the first aligned four, which rank 0 keeps as pairs.
comm::BlockPlan scattered(std::int64_t leaves, int ranks) {
  std::vector<comm::Block> blocks;
  for (std::int64_t leaf = 0; leaf < leaves;) {
    const int level = leaf < 4 && leaf + 2 <= leaves ? 1 : 0;
    const int owner = leaf < 4 ? 0 : static_cast<int>(leaf % ranks);
    blocks.push_back({.level = level, .index = leaf >> level, .owner = owner});
    leaf += std::int64_t{1} << level;
  }
  return comm::BlockPlan::of_separate_blocks(std::move(blocks), ranks);
}

/// The blocks of all ranks, evaluated by the plan: what an exchange would make of them.
std::vector<std::byte> folded(const Case& c, GradientFolder* of_many_steps = nullptr,
                              std::vector<std::vector<std::byte>>* memory = nullptr) {
  const auto plan =
      c.scattered ? scattered(c.leaves, c.ranks) : comm::BlockPlan::even(c.leaves, c.ranks);
  std::vector<std::vector<std::byte>> blocks(plan.blocks().size());
  for (int rank = 0; rank < c.ranks; ++rank) {
    const LeafSchedule schedule(plan, rank);
    std::vector<std::vector<std::byte>> own(
        static_cast<std::size_t>(plan.held_by(rank)),
        std::vector<std::byte>(layout().bytes(), std::byte{0x7f}));
    GradientFolder fresh(layout(), [&](int b) { return own[static_cast<std::size_t>(b)].data(); });
    GradientFolder& folder = of_many_steps ? *of_many_steps : fresh;
    if (memory) *memory = std::move(own);
    folder.begin_step();
    std::vector<int> done(layout().size());
    const auto micro_batches = static_cast<std::int64_t>(c.present.size());
    for (const auto& scheduled : schedule.leaves()) {
      const std::int64_t leaf = scheduled.leaf;
      folder.begin_leaf(scheduled, &scheduled == &schedule.leaves().back());
      for (std::int64_t v = leaf * c.per_leaf; v < std::min((leaf + 1) * c.per_leaf, micro_batches);
           ++v) {
        for (std::size_t t = 0; t < layout().size(); ++t) {
          if (!c.present[static_cast<std::size_t>(v)][t]) continue;
          const auto elements = layout()[t].elements;
          const auto place = static_cast<std::uint64_t>(v);
          folder.add(t, layout()[t].dtype == DType::kFloat64
                            ? torch::tensor(draw<double>(elements, place, t), torch::kDouble)
                            : torch::tensor(draw<float>(elements, place, t), torch::kFloat));
        }
      }
      folder.end_leaf([&](std::size_t t) { ++done[t]; });
    }
    if (!schedule.leaves().empty()) {
      for (const int count : done) EXPECT_EQ(count, 1) << "each tensor is complete once";
    }
    auto position = plan.positions_of(rank).begin();
    for (auto& block : memory ? *memory : own)
      blocks[static_cast<std::size_t>(*position++)] = std::move(block);
  }
  std::vector<std::byte> out(layout().bytes());
  for (const auto& entry : layout().entries()) {
    std::vector<const std::byte*> operands;
    for (const auto& block : blocks) operands.push_back(block.data() + entry.offset);
    plan.evaluate(operands, out.data() + entry.offset, entry.elements, entry.dtype);
  }
  return out;
}

template <typename T>
void expect_oracle(const Case& c, std::size_t tensor, const std::vector<std::byte>& found) {
  const auto& place = layout()[tensor];
  std::vector<Gradient<T>> gradients;
  for (std::size_t v = 0; v < c.present.size(); ++v) {
    gradients.push_back(c.present[v][tensor] ? Gradient<T>(draw<T>(place.elements, v, tensor))
                                             : Gradient<T>());
  }
  auto sum = test::canonical_sum(gradients, static_cast<std::size_t>(c.per_leaf));
  const std::vector<T> want = sum ? *sum : std::vector<T>(place.elements, static_cast<T>(-0.0));
  const std::span<const T> got(reinterpret_cast<const T*>(found.data() + place.offset),
                               place.elements);
  ASSERT_TRUE(test::same_bits<T>(got, want))
      << c.leaves << " leaves of " << c.per_leaf << " on " << c.ranks << " ranks, " << place.name;
}

Case random_case(std::int64_t leaves, int ranks, std::int64_t per_leaf, std::mt19937& random) {
  Case c{leaves, ranks, per_leaf, {}};
  // The last leaf may be short.
  const auto micro_batches = leaves * per_leaf - static_cast<std::int64_t>(random() % per_leaf);
  const int presence = static_cast<int>(random() % 4);  // of 3: never to always
  for (std::int64_t v = 0; v < micro_batches; ++v) {
    c.present.emplace_back();
    for (std::size_t t = 0; t < layout().size(); ++t)
      c.present.back().push_back(static_cast<int>(random() % 3) < presence);
  }
  return c;
}

void expect_oracle(const Case& c, const std::vector<std::byte>& found) {
  expect_oracle<float>(c, 0, found);
  expect_oracle<float>(c, 1, found);
  expect_oracle<double>(c, 2, found);
}

TEST(GradientFolder, IsTheRecursiveSumForEveryNumberOfLeavesAndRanks) {
  std::mt19937 random(11);
  for (std::int64_t leaves = 1; leaves <= 40; ++leaves) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      auto c = random_case(leaves, ranks, 1 + static_cast<std::int64_t>(random() % 3), random);
      for (const bool scattered : {false, true}) {
        c.scattered = scattered;
        expect_oracle(c, folded(c));
      }
      if (HasFatalFailure()) return;
    }
  }
}

// A leaf, a tensor or a step leaves nothing behind for the next.
TEST(GradientFolder, OneFolderServesManySteps) {
  std::mt19937 random(12);
  std::vector<std::vector<std::byte>> memory;
  GradientFolder folder(layout(),
                        [&](int b) { return memory[static_cast<std::size_t>(b)].data(); });
  for (const std::int64_t leaves : {7, 1, 16, 13, 2}) {
    const auto c = random_case(leaves, 1, 2, random);
    expect_oracle(c, folded(c, &folder, &memory));
    // A step that is given up in the middle.
    folder.begin_step();
    folder.begin_leaf({.leaf = 0}, false);
    for (std::size_t t : {0, 1}) folder.add(t, torch::ones({layout()[t].shape[0]}));
  }
}

// `.grad` may share its memory with another gradient or with a tensor of the user's.
TEST(GradientFolder, NeverAddsIntoATensorThatItWasGiven) {
  const std::int64_t elements = 1030;
  const ArenaLayout two({entry(1030, DType::kFloat32), entry(1030, DType::kFloat32)});
  std::vector<std::vector<std::byte>> memory(1, std::vector<std::byte>(two.bytes()));
  for (const std::int64_t per_leaf : {1, 3}) {
    for (const std::int64_t leaves : {1, 2, 8}) {
      GradientFolder folder(two, [&](int b) { return memory[static_cast<std::size_t>(b)].data(); });
      const LeafSchedule schedule(comm::BlockPlan::even(leaves, 1), 0);
      folder.begin_step();
      const auto given = torch::arange(elements, torch::kFloat);
      const auto copy = given.clone();
      for (const auto& leaf : schedule.leaves()) {
        folder.begin_leaf(leaf, leaf.leaf == leaves - 1);
        for (std::int64_t m = 0; m < per_leaf; ++m) {
          folder.add(0, given);
          folder.add(1, given);
        }
        folder.end_leaf([](std::size_t) {});
      }
      EXPECT_TRUE(given.equal(copy)) << leaves << " leaves of " << per_leaf;
      for (std::size_t t : {0, 1}) {
        const auto sum =
            tensor::view_of(memory[0].data() + two[t].offset, DType::kFloat32, {elements});
        EXPECT_TRUE(sum.equal(copy * static_cast<double>(leaves * per_leaf)));
      }
    }
  }
}

TEST(GradientFolder, TakesGradientsInOtherLayoutsAndDtypes) {
  const ArenaLayout one({entry(6, DType::kFloat32)});
  std::vector<float> out(one.bytes() / sizeof(float));
  GradientFolder folder(one, [&](int) { return reinterpret_cast<std::byte*>(out.data()); });
  folder.begin_step();
  folder.begin_leaf({.leaf = 0, .block = 0}, true);
  folder.add(0, torch::arange(6, torch::kDouble).reshape({2, 3}).t());
  EXPECT_TRUE(folder.finish(0));
  EXPECT_EQ(std::vector<float>(out.begin(), out.begin() + 6),
            (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_THROW(folder.add(0, torch::ones({6})), InternalError) << "its leaf is finished";
}

TEST(GradientFolder, ASparseGradientIsRefusedByName) {
  GradientFolder folder(layout(), [](int) -> std::byte* { return nullptr; });
  folder.begin_step();
  folder.begin_leaf({.leaf = 0, .block = 0}, true);
  try {
    folder.add(1, torch::ones({1030}).to_sparse());
    FAIL() << "it was taken";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("t1030"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace yoke::sync
