#pragma once

#include <cstddef>

#include "yoke/base/dtype.h"
#include "yoke/comm/reduce_op.h"

namespace yoke::comm {

/// Element by element on `count` elements; pointers need only the alignment of the element. `out`
/// may be the same place as an operand, but may not overlap one otherwise. No state, no order
/// between elements: the bits do not depend on how a buffer is cut, nor on the vector width that
/// the processor has.
///
/// float16 and bfloat16 are widened to float32, combined, and rounded once per combination
/// (comm/half.h). The integers wrap around. kMax and kMin give NaN if either operand is NaN.
using Combine = void (*)(std::byte* out, const std::byte* left, const std::byte* right,
                         std::size_t count);
using CombineFour = void (*)(std::byte* out, const std::byte* a, const std::byte* b,
                             const std::byte* c, const std::byte* d, std::size_t count);

/// out = left op right; kMean combines like kSum. Throws ConfigError where the dtype has no such
/// arithmetic (kBool; kMean of integers), naming both.
Combine combine_of(DType dtype, ReduceOp op);

/// out = (a + b) + (c + d), where there is a single pass for it (sums of float32 and float64); else
/// null.
CombineFour combine_four_of(DType dtype, ReduceOp op);

/// The division of kMean: data[i] /= divisor, for the floating types.
void divide(std::byte* data, std::size_t count, DType dtype, int divisor);

/// memcpy for buffers of shared memory, as a plain loop of vectors. Measured faster than the C
/// library's at times; why is not settled: its `rep movsb` is one explanation, the distance between
/// the two cores, which changed between those measurements, another.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes);

/// The same past the caches (x86; elsewhere as above), for more than a cache holds or for what
/// another core reads next: a line that is dirty in the cache of a far core comes at 2 GB/s, one in
/// memory at 10 (measured). Ordered before every later store of this thread.
void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace yoke::comm
