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

Summary::Summary(std::size_t tensors, std::size_t integers, std::size_t most)
    : tensors_(tensors),
      integers_(integers),
      most_(most),
      integers_at_(round_up(sizeof(Header) + tensors)),
      results_at_(integers_at_ + round_up(integers)),
      bytes_(results_at_ + most * sizeof(MicroBatchResult)),
      mine_(bytes_),
      present_(tensors) {}

void Summary::clear() {
  std::fill(mine_.begin(), mine_.end(), std::byte{0});
}

std::span<std::byte> Summary::integers() {
  return {mine_.data() + integers_at_, integers_};
}

void Summary::add(const MicroBatchResult& result) {
  YOKE_ENSURE(static_cast<std::size_t>(header().results) < most_, "more micro-batches than ",
              most_);
  std::memcpy(
      mine_.data() + results_at_ + static_cast<std::size_t>(header().results) * sizeof(result),
      &result, sizeof(result));
  ++header().results;
}

const Summary::Header& Summary::header_of(int rank) const {
  return *reinterpret_cast<const Header*>(all_.data() + static_cast<std::size_t>(rank) * bytes_);
}

void Summary::gather(comm::Communicator& communicator, std::int64_t micro_batches) {
  ranks_ = communicator.size();
  all_.resize(bytes_ * static_cast<std::size_t>(ranks_));
  communicator.all_gather(mine_, all_);
  wishes_ = {};
  std::fill(present_.begin(), present_.end(), 0);
  results_.clear();
  for (int rank = 0; rank < ranks_; ++rank) {
    const std::byte* theirs = all_.data() + static_cast<std::size_t>(rank) * bytes_;
    wishes_.stop = wishes_.stop || header_of(rank).stop != 0;
    wishes_.change = wishes_.change || header_of(rank).change != 0;
    for (std::size_t i = 0; i < tensors_; ++i)
      present_[i] |= static_cast<std::uint8_t>(theirs[sizeof(Header) + i]);
    for (std::int64_t i = 0; i < header_of(rank).results; ++i) {
      Result result;
      std::memcpy(static_cast<MicroBatchResult*>(&result),
                  theirs + results_at_ + static_cast<std::size_t>(i) * sizeof(MicroBatchResult),
                  sizeof(MicroBatchResult));
      result.rank = rank;
      results_.push_back(result);
    }
  }
  std::sort(results_.begin(), results_.end(),
            [](const Result& a, const Result& b) { return a.micro_batch < b.micro_batch; });
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
    valid.push_back(
        {rank, {all_.data() + static_cast<std::size_t>(rank) * bytes_ + integers_at_, integers_}});
  }
  return valid;
}

}  // namespace yoke::sync
