#include "yoke/comm/shm/direct.h"

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/comm/kernels.h"
#include "yoke/comm/slice.h"

namespace yoke::comm {
namespace {

/// Of memory that is read and written by several ranks at once: no two write the same line.
constexpr std::size_t kLineBytes = 64;
/// Small enough that all operands of a piece stay in the first-level cache until it is stored to
/// all.
constexpr std::size_t kPieceBytes = 8192;

std::size_t region_bytes(int ranks) {
  return ControlLines::region_bytes(ranks) +
         static_cast<std::size_t>(ranks) * 4 * Direct::kStageBytes;
}

}  // namespace

Direct::Direct(std::shared_ptr<net::ShmGroup> group, net::SharedMemory& memory, Deadline deadline)
    : group_(std::move(group)),
      memory_(memory),
      region_(group_->open_region(memory, "direct", region_bytes(group_->size()), deadline)),
      lines_(group_, region_->bytes().data()),
      one_each_(BlockPlan::even(group_->size(), group_->size())) {}

std::byte* Direct::stage(int rank, std::uint32_t phase) const {
  const std::size_t position = 2 * static_cast<std::size_t>(rank) + phase % 2;
  return region_->bytes().data() + ControlLines::region_bytes(size()) + position * 2 * kStageBytes;
}

void Direct::begin_call(const Call& call, std::uint64_t detail,
                        std::span<const std::byte> payload) {
  messages_.fetch_add(size() - 1, std::memory_order_relaxed);
  lines_.begin(call.tag, detail, payload, call.deadline);
}

void Direct::advance(const Call& call) {
  messages_.fetch_add(size() - 1, std::memory_order_relaxed);
  lines_.advance(call.deadline);
}

void Direct::count(std::size_t bytes) {
  payload_bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

void Direct::fetch(std::byte* to, int from, const std::byte* at, std::size_t bytes) {
  if (bytes == 0) return;
  copy_bytes(to, at, bytes);
  if (from != rank()) count(bytes);
}

net::TransportCounters Direct::counters() const {
  const std::uint64_t payload = payload_bytes_.load(std::memory_order_relaxed);
  const std::uint64_t lines = messages_.load(std::memory_order_relaxed);
  return {.payload_bytes = payload, .wire_bytes = payload + lines * kLineBytes, .messages = lines};
}

void Direct::finish_mean(const Call& call, std::byte* data, std::size_t elements) const {
  if (call.op() == ReduceOp::kMean) divide(data, elements, call.tag.dtype, size());
}

template <typename Stage, typename Fetch>
void Direct::chunked(const Call& call, std::size_t bytes, std::size_t chunk,
                     const Stage& stage_chunk, const Fetch& fetch_chunk) {
  std::size_t first = 0;
  do {
    const std::size_t count = std::min(chunk, bytes - first);
    stage_chunk(first, count);
    first == 0 ? begin_call(call) : advance(call);
    fetch_chunk(first, count);
    first += count;
  } while (first < bytes);
}

void Direct::all_reduce(const Call& call, std::span<std::byte> data) {
  const std::span<const std::byte> mine = data;
  if (data.size() <= kOneShotBytes) return one_shot(call, one_each_, {&mine, 1}, data);
  const auto place = sections_.find(rank(), data);
  const std::uint64_t detail = place ? place->id : 0;
  if (!place) return staged(call, one_each_, {&mine, 1}, data, detail);
  begin_call(call, detail);
  for (int peer = 0; peer < size(); ++peer) {
    if (lines_.detail(peer) != detail) return staged(call, one_each_, {&mine, 1}, data, detail);
  }
  in_sections(call, *place->sections, place->offset, call.tag.count);
}

void Direct::one_shot(const Call& call, const BlockPlan& plan, Blocks mine,
                      std::span<std::byte> out) {
  const bool on_the_line = &plan == &one_each_ && out.size() <= ControlLines::kInlineBytes;
  if (!on_the_line) {
    for (std::size_t i = 0; i < mine.size(); ++i) {
      copy_bytes(next_stage() + i * out.size(), mine[i].data(), out.size());
    }
  }
  begin_call(call, 0, on_the_line ? mine[0] : std::span<const std::byte>());
  operands_.clear();
  for (int position = 0; position < static_cast<int>(plan.blocks().size()); ++position) {
    const int peer = plan.blocks()[position].owner;
    operands_.push_back(on_the_line
                            ? lines_.payload(peer)
                            : stage(peer, phase()) + plan.place_at_owner(position) * out.size());
  }
  plan.fold(operands_, out.data(), call.tag.count, call.tag.dtype, call.op());
  count((plan.blocks().size() - mine.size()) * out.size());
  finish_mean(call, out.data(), call.tag.count);
}

void Direct::staged(const Call& call, const BlockPlan& plan, Blocks mine, std::span<std::byte> out,
                    std::uint64_t detail) {
  const std::size_t width = size_of(call.tag.dtype);
  const std::size_t grain = kLineBytes / width;
  const std::size_t room = kStageBytes / plan.most_blocks() / kLineBytes * kLineBytes;
  YOKE_ENSURE(room > 0, plan.most_blocks(), " blocks of one rank do not fit its stage.");
  const std::size_t chunk = room / width;
  const std::size_t total = call.tag.count;

  struct Chunk {
    std::size_t first, count;
  };
  const auto chunk_at = [&](std::size_t first) {
    return Chunk{first, std::min(chunk, total - first)};
  };
  const auto slice = [&](const Chunk& part, int peer) {
    return slice_of(part.count, size(), peer, grain);
  };

  // What the others reduce: everything but the own slice.
  const auto stage_chunk = [&](const Chunk& part) {
    const Slice own = slice(part, rank());
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const std::byte* from = mine[i].data() + part.first * width;
      std::byte* to = next_stage() + i * room;
      stream_bytes(to, from, own.first * width);
      const std::size_t after = own.first + own.count;
      stream_bytes(to + after * width, from + after * width, (part.count - after) * width);
    }
  };
  std::vector<const std::byte*> operands(plan.blocks().size());
  const auto reduce_slice = [&](const Chunk& part) {
    const Slice own = slice(part, rank());
    for (int position = 0; position < static_cast<int>(operands.size()); ++position) {
      const int peer = plan.blocks()[position].owner;
      const int i = plan.place_at_owner(position);
      operands[position] = peer == rank() ? mine[i].data() + (part.first + own.first) * width
                                          : stage(peer, phase()) + i * room + own.first * width;
    }
    std::byte* reduced = out.data() + (part.first + own.first) * width;
    plan.fold(operands, reduced, own.count, call.tag.dtype, call.op());
    count((operands.size() - mine.size()) * own.count * width);
    finish_mean(call, reduced, own.count);
    stream_bytes(next_result(), reduced, own.count * width);
  };
  const auto fetch_chunk = [&](const Chunk& part) {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      const Slice other = slice(part, peer);
      fetch(out.data() + (part.first + other.first) * width, peer, result(peer, phase()),
            other.count * width);
    }
  };

  // Ranks whose data lies in a section have begun the call already, to learn whether all do.
  bool someone_has_begun = detail != 0;
  if (!someone_has_begun) {
    stage_chunk(chunk_at(0));
    begin_call(call, detail);
    for (int peer = 0; peer < size(); ++peer) someone_has_begun |= lines_.detail(peer) != 0;
  }
  if (someone_has_begun) {
    stage_chunk(chunk_at(0));
    advance(call);
  }
  for (std::size_t first = 0; first < total; first += chunk) {
    const Chunk part = chunk_at(first);
    reduce_slice(part);
    if (first + chunk < total) stage_chunk(chunk_at(first + chunk));
    advance(call);
    fetch_chunk(part);
  }
}

void Direct::in_sections(const Call& call, SharedSections& sections, std::size_t offset,
                         std::size_t elements) {
  const std::size_t width = size_of(call.tag.dtype);
  const Slice own = slice_of(elements, size(), rank(), kSliceGrain);
  const std::size_t piece = kPieceBytes / width;
  std::vector<const std::byte*> operands(size());
  for (std::size_t done = 0; done < own.count; done += piece) {
    const std::size_t count = std::min(piece, own.count - done);
    const std::size_t at = offset + (own.first + done) * width;
    for (int peer = 0; peer < size(); ++peer) operands[peer] = sections.of(peer).data() + at;
    std::byte* reduced = sections.of(rank()).data() + at;
    one_each_.fold(operands, reduced, count, call.tag.dtype, call.op());
    finish_mean(call, reduced, count);
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank()) copy_bytes(sections.of(peer).data() + at, reduced, count * width);
    }
  }
  count(2 * (size() - 1) * own.count * width);
  advance(call);
}

void Direct::reduce_blocks(const Call& call, const BlockPlan& plan, Blocks mine,
                           std::span<std::byte> out) {
  if (out.size() * plan.most_blocks() <= kOneShotBytes) return one_shot(call, plan, mine, out);
  staged(call, plan, mine, out, 0);
}

void Direct::reduce_scatter(const Call& call, std::span<const std::byte> in,
                            std::span<std::byte> out) {
  const std::size_t width = size_of(call.tag.dtype);
  const std::size_t room = kStageBytes / size() / kLineBytes * kLineBytes;
  std::vector<const std::byte*> operands(size());
  chunked(
      call, out.size(), room,
      [&](std::size_t first, std::size_t bytes) {
        for (int part = 0; part < size(); ++part) {
          copy_bytes(next_stage() + part * room, in.data() + part * out.size() + first, bytes);
        }
      },
      [&](std::size_t first, std::size_t bytes) {
        for (int peer = 0; peer < size(); ++peer)
          operands[peer] = stage(peer, phase()) + rank() * room;
        one_each_.fold(operands, out.data() + first, bytes / width, call.tag.dtype, call.op());
        count((size() - 1) * bytes);
        finish_mean(call, out.data() + first, bytes / width);
      });
}

void Direct::all_gather(const Call& call, std::span<const std::byte> in, std::span<std::byte> out) {
  chunked(
      call, in.size(), kStageBytes,
      [&](std::size_t first, std::size_t bytes) {
        copy_bytes(next_stage(), in.data() + first, bytes);
      },
      [&](std::size_t first, std::size_t bytes) {
        for (int peer = 0; peer < size(); ++peer) {
          fetch(out.data() + peer * in.size() + first, peer, stage(peer, phase()), bytes);
        }
      });
}

void Direct::reduce(const Call& call, std::span<std::byte> data) {
  const std::size_t width = size_of(call.tag.dtype);
  std::vector<const std::byte*> operands(size());
  chunked(
      call, data.size(), kStageBytes,
      [&](std::size_t first, std::size_t bytes) {
        copy_bytes(next_stage(), data.data() + first, bytes);
      },
      [&](std::size_t first, std::size_t bytes) {
        if (rank() != call.tag.root) return;
        for (int peer = 0; peer < size(); ++peer) operands[peer] = stage(peer, phase());
        one_each_.fold(operands, data.data() + first, bytes / width, call.tag.dtype, call.op());
        count((size() - 1) * bytes);
        finish_mean(call, data.data() + first, bytes / width);
      });
}

void Direct::broadcast(const Call& call, std::span<std::byte> data) {
  const int root = call.tag.root;
  chunked(
      call, data.size(), kStageBytes,
      [&](std::size_t first, std::size_t bytes) {
        if (rank() == root) copy_bytes(next_stage(), data.data() + first, bytes);
      },
      [&](std::size_t first, std::size_t bytes) {
        if (rank() != root) fetch(data.data() + first, root, stage(root, phase()), bytes);
      });
}

void Direct::all_to_all(const Call& call, std::span<const std::byte> in, std::span<std::byte> out) {
  const std::size_t part_bytes = in.size() / size();
  const std::size_t room = kStageBytes / size() / kLineBytes * kLineBytes;
  chunked(
      call, part_bytes, room,
      [&](std::size_t first, std::size_t bytes) {
        for (int part = 0; part < size(); ++part) {
          copy_bytes(next_stage() + part * room, in.data() + part * part_bytes + first, bytes);
        }
      },
      [&](std::size_t first, std::size_t bytes) {
        for (int peer = 0; peer < size(); ++peer) {
          fetch(out.data() + peer * part_bytes + first, peer, stage(peer, phase()) + rank() * room,
                bytes);
        }
      });
}

void Direct::gather(const Call& call, std::span<const std::byte> in, std::span<std::byte> out) {
  chunked(
      call, in.size(), kStageBytes,
      [&](std::size_t first, std::size_t bytes) {
        copy_bytes(next_stage(), in.data() + first, bytes);
      },
      [&](std::size_t first, std::size_t bytes) {
        if (rank() != call.tag.root) return;
        for (int peer = 0; peer < size(); ++peer) {
          fetch(out.data() + peer * in.size() + first, peer, stage(peer, phase()), bytes);
        }
      });
}

void Direct::scatter(const Call& call, std::span<const std::byte> in, std::span<std::byte> out) {
  const int root = call.tag.root;
  const std::size_t room = kStageBytes / size() / kLineBytes * kLineBytes;
  chunked(
      call, out.size(), room,
      [&](std::size_t first, std::size_t bytes) {
        for (int part = 0; rank() == root && part < size(); ++part) {
          copy_bytes(next_stage() + part * room, in.data() + part * out.size() + first, bytes);
        }
      },
      [&](std::size_t first, std::size_t bytes) {
        fetch(out.data() + first, root, stage(root, phase()) + rank() * room, bytes);
      });
}

std::shared_ptr<SharedSections> Direct::share(const Call& call, std::size_t bytes_per_rank) {
  begin_call(call);
  auto region =
      group_->open_region(memory_, cat("share/", sections_.next()),
                          RegionSections::region_bytes(size(), bytes_per_rank), call.deadline);
  auto sections = std::make_shared<RegionSections>(std::move(region), bytes_per_rank);
  sections_.add(sections);
  return sections;
}

}  // namespace yoke::comm
