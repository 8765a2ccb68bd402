#pragma once

#include <cstddef>
#include <span>

namespace yoke::net {

/// Feeds the bytes to every decoder of net. What one accepts must survive encoding and decoding
/// again, and damage to any one bit of an accepted frame header must be noticed. Throws
/// InternalError when a law is broken.
void check_decoders(std::span<const std::byte> bytes);

}  // namespace yoke::net
