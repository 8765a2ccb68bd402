#pragma once

#include <cstdint>

namespace yoke::comm {

/// kMean is a sum divided once, at the end, by the number of ranks; of integers it is a
/// ConfigError.
enum class ReduceOp : std::uint8_t { kSum, kMean, kMax, kMin, kProduct };

}  // namespace yoke::comm
