#include "yoke/tensor/arena_layout.h"

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/optim/norm.h"

namespace yoke::tensor {

namespace {
std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}
}  // namespace

std::size_t ArenaLayout::Entry::blocks() const {
  return (elements + optim::kBlockElements - 1) / optim::kBlockElements;
}

ArenaLayout::ArenaLayout(std::vector<Entry> entries, DType widest)
    : entries_(std::move(entries)), unit_(optim::kBlockElements * size_of(widest)) {
  for (const Entry& entry : entries_) {
    YOKE_ENSURE(entry.dtype == DType::kFloat32 || entry.dtype == DType::kFloat64, entry.name,
                " is ", name_of(entry.dtype));
    YOKE_ENSURE(size_of(entry.dtype) <= size_of(widest), entry.name, " is wider than ",
                name_of(widest));
  }
  for (Entry& entry : entries_) {
    entry.offset = bytes_;
    entry.first_block = blocks_;
    bytes_ += round_up(entry.bytes(), unit_);
    blocks_ += entry.blocks();
  }
}

ByteRange ArenaLayout::slice(int index, int parts) const {
  const std::size_t units = bytes_ / unit_;
  return {units * index / parts * unit_, units * (index + 1) / parts * unit_};
}

void ArenaLayout::for_each_piece(ByteRange range, std::size_t most,
                                 const std::function<void(const Piece&)>& visit) const {
  auto entry = std::upper_bound(entries_.begin(), entries_.end(), range.first,
                                [](std::size_t at, const Entry& e) { return at < e.offset; });
  if (entry != entries_.begin()) --entry;
  for (; entry != entries_.end() && entry->offset < range.last; ++entry) {
    const std::size_t width = size_of(entry->dtype);
    const std::size_t begin = std::max(range.first, entry->offset);
    const std::size_t end = std::min(range.last, entry->offset + entry->bytes());
    if (begin >= end) continue;
    const std::size_t last = (end - entry->offset) / width;
    for (std::size_t first = (begin - entry->offset) / width; first < last; first += most) {
      visit({static_cast<std::size_t>(entry - entries_.begin()), first,
             std::min(most, last - first)});
    }
  }
}

}  // namespace yoke::tensor
