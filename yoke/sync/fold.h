#pragma once

#include <cstddef>
#include <span>

#include "yoke/base/dtype.h"

namespace yoke::sync {

/// out = operands[n-1] + (... + (operands[1] + operands[0])), element by element, in one pass: the
/// additions that one gradient completes as the binary counter of leaves carries (operands[0] is
/// the youngest). At least one operand; with one it is a copy. `out` may be operands[0] or
/// operands[1]. float32 and float64.
void fold(std::span<const std::byte* const> operands, std::byte* out, std::size_t count,
          DType dtype);

/// Fills with -0.0, the identity of the sum: x + -0.0 has the bits of x for every x, also for -0.0
/// and +0.0. This is how "no gradient" stands in a dense arena
/// (docs/decisions/0004-absent-gradients-are-minus-zero.md).
void fill_absent(std::byte* out, std::size_t count, DType dtype);

/// out[i] = values[i] * factor, the factor rounded to the dtype first.
void multiply(const std::byte* values, double factor, std::byte* out, std::size_t count,
              DType dtype);

/// values[i] = values[i] / divisor.
void divide(std::byte* values, std::size_t count, double divisor, DType dtype);

}  // namespace yoke::sync
