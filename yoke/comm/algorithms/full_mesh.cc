#include "yoke/comm/algorithms/full_mesh.h"

#include <cstring>
#include <memory>

#include "yoke/comm/kernels.h"
#include "yoke/comm/slice.h"

namespace yoke::comm {
namespace {

std::span<const std::byte> part_of(std::span<const std::byte> data, int parts, int part) {
  const std::size_t bytes = data.size() / parts;
  return data.subspan(part * bytes, bytes);
}
std::span<std::byte> part_of(std::span<std::byte> data, int parts, int part) {
  const std::size_t bytes = data.size() / parts;
  return data.subspan(part * bytes, bytes);
}

void copy(std::span<std::byte> to, std::span<const std::byte> from) {
  if (!from.empty() && to.data() != from.data()) std::memmove(to.data(), from.data(), from.size());
}

/// All ranks but this one, beginning with the next: so that not all send to rank 0 first.
std::vector<int> peers_of(const Link& link) {
  std::vector<int> peers;
  for (int step = 1; step < link.size(); ++step)
    peers.push_back((link.rank() + step) % link.size());
  return peers;
}

}  // namespace

void mesh_reduce_blocks(const Link& link, const BlockPlan& plan,
                        std::span<const std::span<const std::byte>> mine, std::span<std::byte> out,
                        ReduceOp op, std::size_t grain) {
  const std::size_t width = size_of(link.tag.dtype);
  const auto slice = [&](int rank) { return slice_of(link.tag.count, link.size(), rank, grain); };
  const Slice own = slice(link.rank());
  const std::size_t bytes = own.count * width;
  const auto held = plan.positions_of(link.rank());

  const auto arrived =
      std::make_unique_for_overwrite<std::byte[]>((plan.blocks().size() - held.size()) * bytes);
  std::vector<const std::byte*> operands(plan.blocks().size());
  std::vector<net::Outgoing> out_messages;
  std::vector<net::Incoming> in_messages;
  for (std::size_t i = 0; i < held.size(); ++i) operands[held[i]] = own.of(mine[i], width).data();
  std::byte* room = arrived.get();
  for (const int peer : peers_of(link)) {
    for (const auto& block : mine) out_messages.push_back({peer, slice(peer).of(block, width)});
    for (const int position : plan.positions_of(peer)) {
      in_messages.push_back({peer, {room, bytes}});
      operands[position] = room;
      room += bytes;
    }
  }
  link.exchange(out_messages, in_messages);

  const std::span<std::byte> reduced = own.of(out, width);
  plan.fold(operands, reduced.data(), own.count, link.tag.dtype, op);
  if (op == ReduceOp::kMean) divide(reduced.data(), own.count, link.tag.dtype, link.size());

  out_messages.clear();
  in_messages.clear();
  for (const int peer : peers_of(link)) {
    out_messages.push_back({peer, reduced});
    in_messages.push_back({peer, slice(peer).of(out, width)});
  }
  link.exchange(out_messages, in_messages);
}

void mesh_reduce_scatter(const Link& link, const BlockPlan& one_each, std::span<const std::byte> in,
                         std::span<std::byte> out, ReduceOp op) {
  const std::size_t count = out.size() / size_of(link.tag.dtype);
  const auto arrived = std::make_unique_for_overwrite<std::byte[]>((link.size() - 1) * out.size());
  std::vector<const std::byte*> operands(link.size());
  std::vector<net::Outgoing> out_messages;
  std::vector<net::Incoming> in_messages;
  std::byte* room = arrived.get();
  operands[link.rank()] = part_of(in, link.size(), link.rank()).data();
  for (const int peer : peers_of(link)) {
    out_messages.push_back({peer, part_of(in, link.size(), peer)});
    in_messages.push_back({peer, {room, out.size()}});
    operands[peer] = room;
    room += out.size();
  }
  link.exchange(out_messages, in_messages);
  one_each.fold(operands, out.data(), count, link.tag.dtype, op);
  if (op == ReduceOp::kMean) divide(out.data(), count, link.tag.dtype, link.size());
}

void mesh_all_gather(const Link& link, std::span<const std::byte> in, std::span<std::byte> out) {
  std::vector<net::Outgoing> out_messages;
  std::vector<net::Incoming> in_messages;
  for (const int peer : peers_of(link)) {
    out_messages.push_back({peer, in});
    in_messages.push_back({peer, part_of(out, link.size(), peer)});
  }
  link.exchange(out_messages, in_messages);
  copy(part_of(out, link.size(), link.rank()), in);
}

void mesh_all_to_all(const Link& link, std::span<const std::byte> in, std::span<std::byte> out) {
  std::vector<net::Outgoing> out_messages;
  std::vector<net::Incoming> in_messages;
  for (const int peer : peers_of(link)) {
    out_messages.push_back({peer, part_of(in, link.size(), peer)});
    in_messages.push_back({peer, part_of(out, link.size(), peer)});
  }
  link.exchange(out_messages, in_messages);
  copy(part_of(out, link.size(), link.rank()), part_of(in, link.size(), link.rank()));
}

void mesh_gather(const Link& link, std::span<const std::byte> in, std::span<std::byte> out,
                 int root) {
  if (link.rank() != root) return link.send(root, in);
  std::vector<net::Incoming> in_messages;
  for (const int peer : peers_of(link))
    in_messages.push_back({peer, part_of(out, link.size(), peer)});
  link.exchange({}, in_messages);
  copy(part_of(out, link.size(), root), in);
}

void mesh_scatter(const Link& link, std::span<const std::byte> in, std::span<std::byte> out,
                  int root) {
  if (link.rank() != root) return link.receive(root, out);
  std::vector<net::Outgoing> out_messages;
  for (const int peer : peers_of(link))
    out_messages.push_back({peer, part_of(in, link.size(), peer)});
  link.exchange(out_messages, {});
  copy(out, part_of(in, link.size(), root));
}

}  // namespace yoke::comm
