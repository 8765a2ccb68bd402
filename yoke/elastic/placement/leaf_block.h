#pragma once

#include <cstdint>
#include <vector>

namespace yoke::elastic {

/// An aligned block of leaves: [index << level, (index + 1) << level).
struct LeafBlock {
  int level = 0;
  std::int64_t index = 0;
  std::int64_t first() const { return index << level; }
  std::int64_t count() const { return std::int64_t{1} << level; }
  bool operator==(const LeafBlock&) const = default;
};

/// The largest aligned blocks that make up leaves first .. first + count - 1, in their order: at
/// most max(1, 2 log2 count).
std::vector<LeafBlock> aligned_blocks(std::int64_t first, std::int64_t count);

}  // namespace yoke::elastic
