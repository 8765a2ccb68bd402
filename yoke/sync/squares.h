#pragma once

#include <cstddef>
#include <span>

#include "yoke/tensor/arena_layout.h"

namespace yoke::sync {

/// Writes the sums of squares of the blocks of one piece of the arena at their place in `squares`.
void piece_squares(const tensor::ArenaLayout::Entry& entry, const tensor::ArenaLayout::Piece& piece,
                   const std::byte* arena, std::span<double> squares);

/// The global norm of the first `entries` tensors of an arena: a tree over the blocks of each, then
/// over tensors in the order of their names (design, section 2.6). Never over buckets or shards.
double global_norm(const tensor::ArenaLayout& layout, std::size_t entries,
                   std::span<const double> squares);

}  // namespace yoke::sync
