#include "yoke/comm/algorithms/ring.h"

#include <cstring>
#include <memory>
#include <utility>

#include "yoke/comm/kernels.h"
#include "yoke/comm/slice.h"

namespace yoke::comm {
namespace {

/// The rank `steps` places before this one, around the ring.
int before(const Link& link, int steps) {
  return (link.rank() - steps + 2 * link.size()) % link.size();
}
int next(const Link& link) {
  return (link.rank() + 1) % link.size();
}

/// Sums slice `rank` of all ranks into `out`. Partial sums travel in two buffers of their own, so
/// that the input stays as it is.
void reduce_scatter(const Link& link, std::span<const std::byte> in, std::span<std::byte> out,
                    ReduceOp op) {
  const std::size_t width = size_of(link.tag.dtype);
  const std::size_t total = in.size() / width;
  const Combine combine = combine_of(link.tag.dtype, op);
  const auto slice = [&](int rank) { return slice_of(total, link.size(), rank); };
  const std::size_t largest = ((total + link.size() - 1) / link.size()) * width;
  auto sending = std::make_unique_for_overwrite<std::byte[]>(largest);
  auto arriving = std::make_unique_for_overwrite<std::byte[]>(largest);

  std::span<const std::byte> sent = slice(before(link, 1)).of(in, width);
  for (int step = 0; step + 1 < link.size(); ++step) {
    const Slice next_slice = slice(before(link, step + 2));
    const std::size_t bytes = next_slice.count * width;
    link.exchange({{next(link), sent}}, {{before(link, 1), {arriving.get(), bytes}}});
    const bool last = step + 2 == link.size();
    std::byte* sum = last ? out.data() : arriving.get();
    combine(sum, arriving.get(), next_slice.of(in, width).data(), next_slice.count);
    sent = {arriving.get(), bytes};
    std::swap(sending, arriving);
  }
  if (link.size() == 1 && !in.empty() && out.data() != in.data())
    std::memcpy(out.data(), in.data(), in.size());
  if (op == ReduceOp::kMean) divide(out.data(), out.size() / width, link.tag.dtype, link.size());
}

/// Every rank has its slice in `data` and gets those of the others.
template <typename SliceOf>
void all_gather(const Link& link, std::span<std::byte> data, std::size_t width,
                const SliceOf& slice) {
  for (int step = 0; step + 1 < link.size(); ++step) {
    link.exchange(
        {{next(link), slice(before(link, step)).of(std::span<const std::byte>(data), width)}},
        {{before(link, 1), slice(before(link, step + 1)).of(data, width)}});
  }
}

}  // namespace

void ring_all_reduce(const Link& link, std::span<const std::byte> in, std::span<std::byte> out,
                     ReduceOp op) {
  const std::size_t width = size_of(link.tag.dtype);
  const auto slice = [&](int rank) { return slice_of(out.size() / width, link.size(), rank); };
  reduce_scatter(link, in, slice(link.rank()).of(out, width), op);
  all_gather(link, out, width, slice);
}

void ring_reduce_scatter(const Link& link, std::span<const std::byte> in, std::span<std::byte> out,
                         ReduceOp op) {
  reduce_scatter(link, in, out, op);
}

void ring_all_gather(const Link& link, std::span<const std::byte> in, std::span<std::byte> out) {
  const auto slice = [&](int rank) { return Slice{rank * in.size(), in.size()}; };
  const std::span<std::byte> own = slice(link.rank()).of(out, 1);
  if (!in.empty() && own.data() != in.data()) std::memmove(own.data(), in.data(), in.size());
  all_gather(link, out, 1, slice);
}

}  // namespace yoke::comm
