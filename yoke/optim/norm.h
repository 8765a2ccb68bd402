#pragma once

#include <cstddef>
#include <span>

namespace yoke::optim {

/// Elements of one block of a norm, and the unit at which buckets, slices and shards are cut
/// (design, section 2.6).
inline constexpr std::size_t kBlockElements = 1024;

/// Sums of squares, in double, of the blocks of 1,024 elements of one tensor (the last may be
/// short); out has ceil(n / 1024) elements. The order inside a block is fixed and the same for
/// every build of the loop: element i is added to lane i % 16 in the order of i, then lane j + 8 to
/// lane j, j + 4 to j, j + 2 to j and j + 1 to j.
void block_squares(std::span<const float> values, std::span<double> out);
void block_squares(std::span<const double> values, std::span<double> out);

/// Adds as a binary counter carries, what is left over smallest first; 0 for none. Used over the
/// blocks of a tensor and then over tensors in the order of their names.
double tree_sum(std::span<const double> values);

/// The factor that clips a gradient of this norm to `max_norm` (as torch's clip_grad_norm_:
/// max/(norm + 1e-6), at most 1); 1 when max_norm is 0. A norm that is NaN gives NaN, an infinite
/// one 0.
double clip_scale(double norm, double max_norm);

}  // namespace yoke::optim
