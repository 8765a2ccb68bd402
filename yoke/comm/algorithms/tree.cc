#include "yoke/comm/algorithms/tree.h"

#include <cstring>
#include <map>
#include <memory>

#include "yoke/base/error.h"
#include "yoke/comm/kernels.h"

namespace yoke::comm {

int tree_reduce(const Link& link, const BlockPlan& plan,
                std::span<const std::span<const std::byte>> mine, std::span<std::byte> out,
                ReduceOp op) {
  const Combine combine = combine_of(link.tag.dtype, op);
  const std::size_t count = out.size() / size_of(link.tag.dtype);
  const auto allocate = [&] { return std::make_unique_for_overwrite<std::byte[]>(out.size()); };
  // Partial sums of this rank's blocks; a block without one is as the caller gave it. They are
  // apart from `out`, which stays as it was until every contribution has come.
  std::map<int, std::unique_ptr<std::byte[]>> partial;
  std::unique_ptr<std::byte[]> arrived;
  const auto value = [&](int slot) -> const std::byte* {
    const auto sum = partial.find(slot);
    return sum != partial.end() ? sum->second.get() : mine[plan.place_at_owner(slot)].data();
  };

  for (const auto& [left, right] : plan.additions()) {
    const int to = plan.blocks()[left].owner;
    const int from = plan.blocks()[right].owner;
    if (from == link.rank() && to != from) {
      link.send(to, {value(right), out.size()});
      partial.erase(right);
    }
    if (to != link.rank()) continue;
    const std::byte* operand = nullptr;
    if (from == to) {
      operand = value(right);
    } else {
      if (!arrived) arrived = allocate();
      link.receive(from, {arrived.get(), out.size()});
      operand = arrived.get();
    }
    const std::byte* own = value(left);
    auto& sum = partial[left];
    if (!sum) sum = allocate();
    combine(sum.get(), own, operand, count);
    if (from == to) partial.erase(right);
  }
  const int root = plan.blocks()[0].owner;
  if (root == link.rank() && !out.empty() && value(0) != out.data())
    std::memcpy(out.data(), value(0), out.size());
  return root;
}

void tree_broadcast(const Link& link, std::span<std::byte> data, int root) {
  const int size = link.size();
  const int place = (link.rank() - root + size) % size;  // in a tree whose root is 0
  int reach = 1;  // children are at place + reach/2, reach/4, ...
  while (reach < size && (place & reach) == 0) reach <<= 1;
  if (place != 0) link.receive((place - reach + root) % size, data);
  std::vector<net::Outgoing> children;
  for (int step = reach >> 1; step > 0; step >>= 1) {
    if (place + step < size) children.push_back({(place + step + root) % size, data});
  }
  link.exchange(children, {});
}

void tree_barrier(const Link& link, const BlockPlan& one_each) {
  for (const auto& [left, right] : one_each.additions()) {
    if (link.rank() == right) link.send(left, {});
    if (link.rank() == left) link.receive(right, {});
  }
  tree_broadcast(link, {}, 0);
}

}  // namespace yoke::comm
