#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>

namespace yoke::cli {

/// Takes whole numbers from `least` to `most`, written in decimal digits. CLI11 by itself reads 010
/// as eight, and the largest number where a larger one is written.
CLI::Validator whole_number(std::int64_t least,
                            std::int64_t most = std::numeric_limits<std::int64_t>::max());

/// Takes a span of 0 to 86,400 seconds, a day, which any clock can add to its time.
CLI::Validator seconds();

}  // namespace yoke::cli
