#pragma once

#include <span>

#include "yoke/comm/algorithms/link.h"
#include "yoke/comm/block_plan.h"

/// Every rank talks to every other at once. P ranks, N bytes; slice_r is what rank r owns
/// (comm/slice.h).
///
///                    steps  bytes sent by rank r                                messages
///   reduce_blocks    2      blocks_r (N - slice_r) + (P - 1) slice_r            (P - 1) (blocks_r
///   + 1) all_reduce       2      the same with one block each: 2 (P - 1) N / P       2 (P - 1)
///   reduce_scatter   1      (P - 1) N / P, N all parts together                 P - 1
///   all_gather       1      (P - 1) N, N the part of a rank                     P - 1
///   all_to_all       1      (P - 1) N / P, N all parts together                 P - 1
///   gather           1      N, the root 0                                       1
///   scatter          1      root (P - 1) N, N the part of a rank; others 0      P - 1
///
/// Sums are canonical. A rank keeps the blocks of its slice that others sent: about N bytes for one
/// block a rank.
namespace yoke::comm {

/// Slices are cut at multiples of `grain` elements. `mine` may be `out` itself when it is the only
/// block; `out` is written once all contributions to the own slice have come. kMean divides by the
/// number of ranks.
void mesh_reduce_blocks(const Link& link, const BlockPlan& plan,
                        std::span<const std::span<const std::byte>> mine, std::span<std::byte> out,
                        ReduceOp op, std::size_t grain);
void mesh_reduce_scatter(const Link& link, const BlockPlan& one_each, std::span<const std::byte> in,
                         std::span<std::byte> out, ReduceOp op);
void mesh_all_gather(const Link& link, std::span<const std::byte> in, std::span<std::byte> out);
void mesh_all_to_all(const Link& link, std::span<const std::byte> in, std::span<std::byte> out);
void mesh_gather(const Link& link, std::span<const std::byte> in, std::span<std::byte> out,
                 int root);
void mesh_scatter(const Link& link, std::span<const std::byte> in, std::span<std::byte> out,
                  int root);

}  // namespace yoke::comm
