#include "yoke/sync/summary.h"

#include <algorithm>
#include <cstring>

#include "yoke/base/error.h"

namespace yoke::sync {

namespace {
std::size_t round_up(std::size_t value) {
  return (value + 7) / 8 * 8;
}
}  // namespace

Summary::Summary(const SummaryLimits& limits)
    : limits_(limits),
      integers_at_(round_up(sizeof(Header) + limits.tensors)),
      results_at_(integers_at_ + round_up(limits.integers)),
      blocks_at_(results_at_ + limits.results * sizeof(MicroBatchResult)),
      checks_at_(blocks_at_ + limits.blocks * sizeof(HeldBlock)),
      bytes_(checks_at_ + limits.checks * sizeof(LeafCheck)),
      mine_(bytes_),
      present_(limits.tensors) {
  static_assert(sizeof(HeldBlock) % 8 == 0 && sizeof(LeafCheck) % 8 == 0);
}

void Summary::clear() {
  std::fill(mine_.begin(), mine_.end(), std::byte{0});
}

std::span<std::byte> Summary::integers() {
  return {mine_.data() + integers_at_, limits_.integers};
}

template <typename Item>
void Summary::append(std::int64_t& count, std::size_t at, std::size_t most, const Item& item) {
  YOKE_ENSURE(static_cast<std::size_t>(count) < most, "more than ", most, " of a rank in a step");
  std::memcpy(mine_.data() + at + static_cast<std::size_t>(count) * sizeof(item), &item,
              sizeof(item));
  ++count;
}

void Summary::add(const MicroBatchResult& result) {
  append(header().results, results_at_, limits_.results, result);
}

void Summary::add(const LeafCheck& check) {
  append(header().checks, checks_at_, limits_.checks, check);
}

void Summary::add(const comm::Block& block, int place) {
  append(header().blocks, blocks_at_, limits_.blocks, HeldBlock{block, place});
}

const Summary::Header& Summary::header_of(int rank) const {
  return *reinterpret_cast<const Header*>(all_.data() + static_cast<std::size_t>(rank) * bytes_);
}

template <typename Item>
Item Summary::item(int rank, std::size_t at, std::int64_t index) const {
  Item item;
  std::memcpy(&item,
              all_.data() + static_cast<std::size_t>(rank) * bytes_ + at +
                  static_cast<std::size_t>(index) * sizeof(Item),
              sizeof(Item));
  return item;
}

void Summary::gather(comm::Communicator& communicator, std::int64_t micro_batches,
                     std::int64_t leaf) {
  ranks_ = communicator.size();
  all_.resize(bytes_ * static_cast<std::size_t>(ranks_));
  communicator.all_gather(mine_, all_);
  wishes_ = {};
  std::fill(present_.begin(), present_.end(), 0);
  seconds_.clear();
  checks_.clear();
  for (int rank = 0; rank < ranks_; ++rank) {
    const Header& header = header_of(rank);
    const std::byte* theirs = all_.data() + static_cast<std::size_t>(rank) * bytes_;
    wishes_.stop = wishes_.stop || header.stop != 0;
    wishes_.change = wishes_.change || header.change != 0;
    seconds_.push_back(header.seconds);
    for (std::size_t i = 0; i < limits_.tensors; ++i)
      present_[i] |= static_cast<std::uint8_t>(theirs[sizeof(Header) + i]);
    for (std::int64_t i = 0; i < header.checks; ++i)
      checks_.push_back({item<LeafCheck>(rank, checks_at_, i), rank});
  }
  std::ranges::stable_sort(checks_, {}, &Check::leaf);
  gather_held();
  gather_results(micro_batches, leaf);
}

void Summary::gather_held() {
  std::vector<HeldBlock> all;
  for (int rank = 0; rank < ranks_; ++rank) {
    for (std::int64_t i = 0; i < header_of(rank).blocks; ++i)
      all.push_back(item<HeldBlock>(rank, blocks_at_, i));
  }
  held_.reset();
  if (all.empty()) return;
  const auto first_leaf = [](const HeldBlock& held) { return held.block.first(); };
  std::ranges::stable_sort(all, {}, first_leaf);
  const auto [end, last] = std::ranges::unique(all, {}, first_leaf);
  all.erase(end, last);
  std::vector<comm::Block> blocks;
  std::vector<int> places;
  for (const HeldBlock& held : all) {
    blocks.push_back(held.block);
    places.push_back(held.place);
  }
  held_ = HeldBlocks{comm::BlockPlan::of_separate_blocks(std::move(blocks), ranks_),
                     std::move(places)};
}

void Summary::gather_results(std::int64_t micro_batches, std::int64_t leaf) {
  // Where two ranks computed one, that of the block that counts does.
  std::vector<int> owners;
  if (held_) {
    for (const comm::Block& block : held_->plan.blocks())
      owners.resize(static_cast<std::size_t>(block.last() + 1), block.owner);
  }
  results_.clear();
  for (int rank = 0; rank < ranks_; ++rank) {
    for (std::int64_t i = 0; i < header_of(rank).results; ++i) {
      Result result{item<MicroBatchResult>(rank, results_at_, i), rank};
      if (owners.empty() || owners.at(static_cast<std::size_t>(result.micro_batch / leaf)) == rank)
        results_.push_back(result);
    }
  }
  std::ranges::sort(results_, {}, &Result::micro_batch);
  YOKE_ENSURE_EQ(static_cast<std::int64_t>(results_.size()), micro_batches,
                 "a micro-batch is missing or was computed twice");
  for (std::size_t i = 0; i < results_.size(); ++i) {
    YOKE_ENSURE_EQ(results_[i].micro_batch, static_cast<std::int64_t>(i),
                   "a micro-batch is missing or was computed twice");
  }
}

std::vector<Summary::Integers> Summary::all_integers() const {
  std::vector<Integers> valid;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (header_of(rank).integers_valid == 0) continue;
    valid.push_back({rank,
                     {all_.data() + static_cast<std::size_t>(rank) * bytes_ + integers_at_,
                      limits_.integers}});
  }
  return valid;
}

}  // namespace yoke::sync
