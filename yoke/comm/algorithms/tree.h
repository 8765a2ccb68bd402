#pragma once

#include <span>

#include "yoke/comm/algorithms/link.h"
#include "yoke/comm/block_plan.h"

/// Binomial trees. P ranks, N bytes.
///
///                steps                  bytes sent by rank r
///   reduce       ceil(log2 P)           N, the root 0
///   broadcast    ceil(log2 P)           N for each child
///   all_reduce   2 ceil(log2 P)         N (1 or 0 up, then one for each child): the busiest rank,
///   0, ceil(log2 P) N barrier      2 ceil(log2 P)         0; the same messages, empty
///
/// Messages: one for each N. In all, all_reduce sends 2 (P - 1) N.
/// Textbook: Thakur, Rabenseifner, Gropp: "Optimization of collective communication operations in
/// MPICH", 2005.
namespace yoke::comm {

/// The sum of the plan's blocks (mine: those of this rank), combined where the left operand is:
/// each addition of the plan between two ranks is one message. With one block a rank this is the
/// binomial tree, and its order is the canonical one for any P. Returns the rank that has the
/// result, in its `out`; the `out` of others is not written.
int tree_reduce(const Link& link, const BlockPlan& plan,
                std::span<const std::span<const std::byte>> mine, std::span<std::byte> out,
                ReduceOp op);

/// `data` of `root` to all.
void tree_broadcast(const Link& link, std::span<std::byte> data, int root);

/// Returns after all ranks have entered.
void tree_barrier(const Link& link, const BlockPlan& one_each);

}  // namespace yoke::comm
