#pragma once

#include <span>

#include "yoke/comm/algorithms/link.h"
#include "yoke/comm/reduce_op.h"

/// Each rank sends to the next and receives from the one before. P ranks, N bytes; slice_r of rank
/// r (comm/slice.h).
///
///                    steps      bytes sent by rank r                          messages
///   all_reduce       2 (P - 1)  2 N - slice_r - slice_(r+1): 2 (P - 1) N / P  2 (P - 1)
///   reduce_scatter   P - 1      (P - 1) N / P, N all parts together           P - 1
///   all_gather       P - 1      (P - 1) N, N the part of a rank               P - 1
///
/// Slice r is added in the order r + 1, r + 2, ..., r: not canonical and different for each slice,
/// but every slice is added once, so all ranks get the same bits. Source: Patarasuk, Yuan:
/// "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
namespace yoke::comm {

/// `out` may be `in`, and is written only after a contribution of every rank has come. kMean
/// divides at the end.
void ring_all_reduce(const Link& link, std::span<const std::byte> in, std::span<std::byte> out,
                     ReduceOp op);
void ring_reduce_scatter(const Link& link, std::span<const std::byte> in, std::span<std::byte> out,
                         ReduceOp op);
void ring_all_gather(const Link& link, std::span<const std::byte> in, std::span<std::byte> out);

}  // namespace yoke::comm
