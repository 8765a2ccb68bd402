#include "yoke/checkpoint/shape.h"

#include <algorithm>

#include "yoke/base/text.h"

namespace yoke::checkpoint {

namespace {
// Times eight bytes it fits into 63 bits.
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 56;
}  // namespace

std::optional<std::uint64_t> elements_of(std::span<const std::int64_t> shape) {
  if (std::ranges::any_of(shape, [](std::int64_t extent) { return extent < 0; }))
    return std::nullopt;
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::uint64_t elements = 1;
  for (const std::int64_t extent : shape) {
    if (elements > kMostElements / static_cast<std::uint64_t>(extent)) return std::nullopt;
    elements *= static_cast<std::uint64_t>(extent);
  }
  return elements;
}

std::string shown(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += cat(i == 0 ? "" : ", ", shape[i]);
  return text + "]";
}

}  // namespace yoke::checkpoint
