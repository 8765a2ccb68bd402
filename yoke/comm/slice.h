#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace yoke::comm {

/// Elements first .. first + count - 1 of a buffer.
struct Slice {
  std::size_t first;
  std::size_t count;

  std::span<std::byte> of(std::span<std::byte> data, std::size_t width) const {
    return data.subspan(first * width, count * width);
  }
  std::span<const std::byte> of(std::span<const std::byte> data, std::size_t width) const {
    return data.subspan(first * width, count * width);
  }
};

/// Part `part` of `count` elements cut into `parts` at multiples of `grain`, as even as can be:
/// parts differ by at most one grain, and the last may be cut short.
inline Slice slice_of(std::size_t count, int parts, int part, std::size_t grain = 1) {
  const std::size_t grains = (count + grain - 1) / grain;
  const std::size_t first = std::min(count, grains * part / parts * grain);
  const std::size_t end = std::min(count, grains * (part + 1) / parts * grain);
  return {first, end - first};
}

/// Where gradients are cut (design, section 2.7).
inline constexpr std::size_t kSliceGrain = 1024;

}  // namespace yoke::comm
