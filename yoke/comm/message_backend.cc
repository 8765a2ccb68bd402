#include "yoke/comm/message_backend.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "yoke/base/error.h"
#include "yoke/comm/algorithms/full_mesh.h"
#include "yoke/comm/algorithms/ring.h"
#include "yoke/comm/algorithms/tree.h"
#include "yoke/comm/kernels.h"
#include "yoke/comm/slice.h"

namespace yoke::comm {
namespace {

/// The blocks of this rank, one after another. Without any it is -0, the identity of addition: +0
/// would turn a sum of -0 into +0.
void add_in_order(std::span<const std::span<const std::byte>> mine, std::span<std::byte> out,
                  DType dtype) {
  const std::size_t count = out.size() / size_of(dtype);
  if (mine.empty()) {
    if (dtype == DType::kFloat32) std::fill_n(reinterpret_cast<float*>(out.data()), count, -0.0f);
    if (dtype == DType::kFloat64) std::fill_n(reinterpret_cast<double*>(out.data()), count, -0.0);
    return;
  }
  const Combine sum = combine_of(dtype, ReduceOp::kSum);
  std::copy(mine[0].begin(), mine[0].end(), out.begin());
  for (const auto& block : mine.subspan(1)) sum(out.data(), out.data(), block.data(), count);
}

}  // namespace

MessageBackend::MessageBackend(std::unique_ptr<net::Transport> transport)
    : transport_(std::move(transport)),
      one_each_(BlockPlan::even(transport_->size(), transport_->size())) {}

Topology MessageBackend::choose(Operation operation, Topology asked, std::size_t bytes) const {
  switch (operation) {
    case Operation::kAllReduce:
      if (asked != Topology::kAuto) return asked;
      return bytes <= kTreeBytes ? Topology::kTree : Topology::kFullMesh;
    case Operation::kReduceBlocks:
      return asked == Topology::kAuto ? Topology::kFullMesh : asked;
    case Operation::kReduceScatter:
    case Operation::kAllGather:
      return asked == Topology::kRing ? Topology::kRing : Topology::kFullMesh;
    case Operation::kReduce:
    case Operation::kBroadcast:
    case Operation::kBarrier:
      return Topology::kTree;
    default:
      return Topology::kFullMesh;
  }
}

void MessageBackend::all_reduce(const Call& call, std::span<std::byte> data) {
  const std::span<const std::byte> mine = data;
  if (call.topology == Topology::kRing) return ring_all_reduce(link(call), data, data, call.op());
  if (call.topology == Topology::kFullMesh) {
    return mesh_reduce_blocks(link(call), one_each_, {&mine, 1}, data, call.op(), 1);
  }
  const int root = tree_reduce(link(call), one_each_, {&mine, 1}, data, call.op());
  if (transport_->rank() == root && call.op() == ReduceOp::kMean) {
    divide(data.data(), call.tag.count, call.tag.dtype, transport_->size());
  }
  tree_broadcast(link(call), data, root);
}

void MessageBackend::reduce_scatter(const Call& call, std::span<const std::byte> in,
                                    std::span<std::byte> out) {
  if (call.topology == Topology::kRing) return ring_reduce_scatter(link(call), in, out, call.op());
  mesh_reduce_scatter(link(call), one_each_, in, out, call.op());
}

void MessageBackend::all_gather(const Call& call, std::span<const std::byte> in,
                                std::span<std::byte> out) {
  if (call.topology == Topology::kRing) return ring_all_gather(link(call), in, out);
  mesh_all_gather(link(call), in, out);
}

void MessageBackend::reduce(const Call& call, std::span<std::byte> data) {
  const std::span<const std::byte> mine = data;
  const int root = call.tag.root;
  const int rank = transport_->rank();
  // The tree ends at rank 0, whose own data must stay unless it is the root.
  std::vector<std::byte> sum(rank == 0 && root != 0 ? data.size() : 0);
  const std::span<std::byte> out = rank == 0 && root != 0 ? std::span<std::byte>(sum) : data;
  tree_reduce(link(call), one_each_, {&mine, 1}, out, call.op());
  if (root != 0 && rank == 0) link(call).send(root, out);
  if (root != 0 && rank == root) link(call).receive(0, data);
  if (rank == root && call.op() == ReduceOp::kMean) {
    divide(data.data(), call.tag.count, call.tag.dtype, transport_->size());
  }
}

void MessageBackend::broadcast(const Call& call, std::span<std::byte> data) {
  tree_broadcast(link(call), data, call.tag.root);
}

void MessageBackend::all_to_all(const Call& call, std::span<const std::byte> in,
                                std::span<std::byte> out) {
  mesh_all_to_all(link(call), in, out);
}

void MessageBackend::gather(const Call& call, std::span<const std::byte> in,
                            std::span<std::byte> out) {
  mesh_gather(link(call), in, out, call.tag.root);
}

void MessageBackend::scatter(const Call& call, std::span<const std::byte> in,
                             std::span<std::byte> out) {
  mesh_scatter(link(call), in, out, call.tag.root);
}

void MessageBackend::barrier(const Call& call) {
  tree_barrier(link(call), one_each_);
}

void MessageBackend::send(const Call& call, std::span<const std::byte> data, int peer) {
  link(call).send(peer, data);
}

void MessageBackend::receive(const Call& call, std::span<std::byte> data, int peer) {
  link(call).receive(peer, data);
}

void MessageBackend::reduce_blocks(const Call& call, const BlockPlan& plan,
                                   std::span<const std::span<const std::byte>> mine,
                                   std::span<std::byte> out) {
  if (call.topology == Topology::kFullMesh) {
    return mesh_reduce_blocks(link(call), plan, mine, out, ReduceOp::kSum, kSliceGrain);
  }
  if (call.topology == Topology::kRing) {
    std::vector<std::byte> sum(out.size());
    add_in_order(mine, sum, call.tag.dtype);
    return ring_all_reduce(link(call), sum, out, ReduceOp::kSum);
  }
  const int root = tree_reduce(link(call), plan, mine, out, ReduceOp::kSum);
  tree_broadcast(link(call), out, root);
}

std::shared_ptr<SharedSections> MessageBackend::share(const Call&, std::size_t) {
  throw ConfigError(
      cat("memory can only be shared between ranks of one host, and this communicator sends "
          "messages over ",
          name(), ". Create it with transport = \"shm\"."));
}

}  // namespace yoke::comm
