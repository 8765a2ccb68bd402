#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace yoke::checkpoint {

/// The product of the extents; nothing if one is negative, or if the elements of any dtype would
/// not fit into memory that 64 bits can name. For shapes that a file claims.
std::optional<std::uint64_t> elements_of(std::span<const std::int64_t> shape);

/// "[2, 3]"; "[]" for a scalar.
std::string shown(std::span<const std::int64_t> shape);

}  // namespace yoke::checkpoint
