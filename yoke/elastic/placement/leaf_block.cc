#include "yoke/elastic/placement/leaf_block.h"

namespace yoke::elastic {

std::vector<LeafBlock> aligned_blocks(std::int64_t first, std::int64_t count) {
  std::vector<LeafBlock> blocks;
  const std::int64_t end = first + count;
  while (first < end) {
    int level = 0;
    while ((first >> level & 1) == 0 && first + (std::int64_t{2} << level) <= end) ++level;
    blocks.push_back({.level = level, .index = first >> level});
    first += std::int64_t{1} << level;
  }
  return blocks;
}

}  // namespace yoke::elastic
