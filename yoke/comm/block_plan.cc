#include "yoke/comm/block_plan.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/comm/kernels.h"

namespace yoke::comm {
namespace {

constexpr std::size_t kChunkBytes = 8192;

}  // namespace

BlockPlan::BlockPlan(std::vector<std::pair<std::int64_t, std::int64_t>> ranges)
    : ranges_(std::move(ranges)) {
  for (std::size_t rank = 0; rank < ranges_.size(); ++rank) {
    const auto [first, count] = ranges_[rank];
    YOKE_ENSURE(count >= 0 && (count == 0 || first == leaves_), "Rank ", rank, " holds ", count,
                " leaves from ", first, " on, where leaf ", leaves_, " comes next.");
    const std::int64_t end = leaves_ + count;
    while (leaves_ < end) {
      int level = 0;
      // As large as alignment and the range allow.
      while ((leaves_ >> level & 1) == 0 && leaves_ + (std::int64_t{2} << level) <= end) ++level;
      blocks_.push_back(
          {.level = level, .index = leaves_ >> level, .owner = static_cast<int>(rank)});
      leaves_ += std::int64_t{1} << level;
    }
  }
  finish(static_cast<int>(ranges_.size()));
}

BlockPlan BlockPlan::of_blocks(std::vector<Block> blocks, int ranks) {
  return gathered(std::move(blocks), ranks, true);
}

BlockPlan BlockPlan::of_separate_blocks(std::vector<Block> blocks, int ranks) {
  return gathered(std::move(blocks), ranks, false);
}

BlockPlan BlockPlan::gathered(std::vector<Block> blocks, int ranks, bool joined) {
  std::sort(blocks.begin(), blocks.end(),
            [](const Block& a, const Block& b) { return a.first() < b.first(); });
  BlockPlan plan;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks));
  bool in_rank_order = true;
  for (Block block : blocks) {
    YOKE_ENSURE(block.level >= 0 && block.owner >= 0 && block.owner < ranks &&
                    block.first() == plan.leaves_,
                "Rank ", block.owner, " of ", ranks, " holds a block of level ", block.level,
                " from leaf ", block.first(), " on, where leaf ", plan.leaves_, " comes next.");
    plan.leaves_ = block.last() + 1;
    counts[static_cast<std::size_t>(block.owner)] += block.last() + 1 - block.first();
    in_rank_order &= plan.blocks_.empty() || plan.blocks_.back().owner <= block.owner;
    while (joined && !plan.blocks_.empty() && plan.blocks_.back().owner == block.owner &&
           plan.blocks_.back().level == block.level &&
           plan.blocks_.back().index == (block.index ^ 1)) {
      block = {.level = block.level + 1, .index = block.index >> 1, .owner = block.owner};
      plan.blocks_.pop_back();
    }
    plan.blocks_.push_back(block);
  }
  if (in_rank_order) {
    std::int64_t first = 0;
    for (const std::int64_t count : counts) {
      plan.ranges_.emplace_back(first, count);
      first += count;
    }
  }
  plan.finish(ranks);
  return plan;
}

/// What follows from blocks_, which are in leaf order.
void BlockPlan::finish(int ranks) {
  first_position_.assign(static_cast<std::size_t>(ranks) + 1, 0);
  for (const Block& block : blocks_) ++first_position_[block.owner + 1];
  most_blocks_ = *std::max_element(first_position_.begin(), first_position_.end());
  std::partial_sum(first_position_.begin(), first_position_.end(), first_position_.begin());
  positions_.resize(blocks_.size());
  auto next = first_position_;
  for (std::size_t position = 0; position < blocks_.size(); ++position) {
    const int owner = blocks_[position].owner;
    place_at_owner_.push_back(next[owner] - first_position_[owner]);
    positions_[next[owner]++] = static_cast<int>(position);
  }

  // The binary counter: two neighbours that make an aligned block of twice the size are combined at
  // once.
  struct Part {
    int slot, level;
    std::int64_t index;
  };
  std::vector<Part> stack;
  for (int slot = 0; slot < static_cast<int>(blocks_.size()); ++slot) {
    Part part{slot, blocks_[slot].level, blocks_[slot].index};
    while (!stack.empty() && stack.back().level == part.level &&
           stack.back().index == (part.index ^ 1)) {
      additions_.emplace_back(stack.back().slot, part.slot);
      part = {stack.back().slot, part.level + 1, part.index >> 1};
      stack.pop_back();
    }
    stack.push_back(part);
  }
  // What is left has falling sizes: the smallest, at the end, comes first.
  while (stack.size() > 1) {
    const Part right = stack.back();
    stack.pop_back();
    additions_.emplace_back(stack.back().slot, right.slot);
  }
  compile();
  std::vector<std::int64_t> words{ranks};
  for (const Block& block : blocks_) {
    words.insert(words.end(), {block.level, block.index, block.owner});
  }
  fingerprint_ = xxh3(std::as_bytes(std::span(words)));
}

std::pair<std::int64_t, std::int64_t> BlockPlan::range_of(int rank) const {
  YOKE_ENSURE(contiguous(), "rank ", rank, " holds no range: the plan scatters leaves.");
  return ranges_[rank];
}

std::pair<int, int> BlockPlan::blocks_of(int rank) const {
  YOKE_ENSURE(contiguous(), "rank ", rank, " holds no range: the plan scatters leaves.");
  return {first_position_[rank], held_by(rank)};
}

BlockPlan BlockPlan::even(std::int64_t leaves, int ranks) {
  YOKE_ENSURE(leaves >= 0 && ranks >= 1, leaves, " leaves on ", ranks, " ranks.");
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::int64_t first = leaves * rank / ranks;
    ranges.emplace_back(first, leaves * (rank + 1) / ranks - first);
  }
  return BlockPlan(std::move(ranges));
}

void BlockPlan::compile() {
  std::vector<int> value(blocks_.size());
  for (std::size_t slot = 0; slot < value.size(); ++slot) value[slot] = static_cast<int>(slot);
  std::vector<int> free;
  for (std::size_t i = 0; i < additions_.size(); ++i) {
    const auto [left, right] = additions_[i];
    Step step{value[left], value[right], kOut};
    if (i + 1 < additions_.size()) {
      if (step.left < 0) {
        step.to = step.left;
        if (step.right < 0) free.push_back(step.right);
      } else if (step.right < 0) {
        step.to = step.right;
      } else if (!free.empty()) {
        step.to = free.back();
        free.pop_back();
      } else {
        // ~0 is kOut, so scratches begin at ~1.
        step.to = ~(++scratches_);
      }
      value[left] = step.to;
    }
    steps_.push_back(step);
  }
  two_pairs_ = additions_ == std::vector<std::pair<int, int>>{{0, 1}, {2, 3}, {0, 2}};
}

void BlockPlan::evaluate(std::span<const std::byte* const> operands, std::byte* out,
                         std::size_t count, DType dtype) const {
  YOKE_ENSURE(dtype == DType::kFloat32 || dtype == DType::kFloat64,
              "Blocks of gradients are float32 or float64, not ", yoke::name_of(dtype), ".");
  fold(operands, out, count, dtype, ReduceOp::kSum);
}

void BlockPlan::fold(std::span<const std::byte* const> operands, std::byte* out, std::size_t count,
                     DType dtype, ReduceOp op) const {
  YOKE_ENSURE(!operands.empty() && operands.size() == blocks_.size(), operands.size(),
              " operands for ", blocks_.size(), " blocks.");
  if (count == 0) return;
  const Combine combine = combine_of(dtype, op);
  const std::size_t width = size_of(dtype);
  if (operands.size() == 1) {
    if (out != operands[0]) copy_bytes(out, operands[0], count * width);
    return;
  }
  if (operands.size() == 2) return combine(out, operands[0], operands[1], count);
  if (const CombineFour four = combine_four_of(dtype, op); two_pairs_ && four != nullptr) {
    return four(out, operands[0], operands[1], operands[2], operands[3], count);
  }

  const std::size_t chunk = std::min(count, kChunkBytes / width);
  const auto scratch = std::make_unique_for_overwrite<std::byte[]>(scratches_ * chunk * width);
  for (std::size_t first = 0; first < count; first += chunk) {
    const std::size_t offset = first * width;
    const auto place = [&](int value) { return scratch.get() + (~value - 1) * chunk * width; };
    const auto operand = [&](int value) -> const std::byte* {
      return value >= 0 ? operands[value] + offset : place(value);
    };
    for (const Step& step : steps_) {
      combine(step.to == kOut ? out + offset : place(step.to), operand(step.left),
              operand(step.right), std::min(chunk, count - first));
    }
  }
}

}  // namespace yoke::comm
