#include "yoke/sync/network_exchange.h"

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/optim/norm.h"
#include "yoke/sync/fold.h"
#include "yoke/sync/squares.h"

namespace yoke::sync {

NetworkExchange::NetworkExchange(comm::Communicator& communicator,
                                 const tensor::ArenaLayout& layout, const ExchangeOptions& options)
    : communicator_(communicator),
      layout_(layout),
      topology_(options.topology),
      added_(options.added),
      blocks_(static_cast<std::size_t>(options.most_blocks)),
      reduced_(layout.bytes()),
      squares_(layout.blocks()),
      held_(HeldBlocks::in_order(comm::BlockPlan::even(1, communicator.size()))) {
  const std::size_t unit = layout_.unit_bytes();
  const std::size_t most = std::max(unit, (options.bucket_bytes + unit - 1) / unit * unit);
  cut_buckets(0, options.parameters, most);
  cut_buckets(options.parameters, layout_.size(), most);
}

NetworkExchange::~NetworkExchange() {
  // The communicator's thread reads our arenas: it must be through with them, well or not, before
  // they go.
  for (const comm::Work& work : pending_) {
    try {
      work.wait();
    } catch (const std::exception&) {
      // Whoever called the step has had this error, or has a worse one.
    }
  }
}

std::byte* NetworkExchange::block(int b) {
  auto& arena = blocks_.at(static_cast<std::size_t>(b));
  if (arena.empty()) arena.resize(layout_.bytes());
  return arena.data();
}

void NetworkExchange::cut_buckets(std::size_t first_entry, std::size_t last_entry,
                                  std::size_t most) {
  const std::size_t before = buckets_.size();
  for (std::size_t i = last_entry; i-- > first_entry;) {
    const auto& entry = layout_[i];
    // A bucket grows towards the front of the arena, through tensors of one dtype, up to `most`
    // bytes.
    for (std::size_t last = end_of(i); last > entry.offset;) {
      const bool joins = buckets_.size() > before && buckets_.back().dtype == entry.dtype &&
                         buckets_.back().range.last - buckets_.back().range.first < most;
      if (!joins) buckets_.push_back({{last, last}, entry.dtype});
      Bucket& bucket = buckets_.back();
      const std::size_t room = most - (bucket.range.last - bucket.range.first);
      bucket.range.first = last - std::min(room, last - entry.offset);
      ++bucket.entries;
      last = bucket.range.first;
    }
  }
}

std::size_t NetworkExchange::end_of(std::size_t entry) const {
  return entry + 1 < layout_.size() ? layout_[entry + 1].offset : layout_.bytes();
}

void NetworkExchange::begin(const HeldBlocks& blocks) {
  held_ = blocks;
  open_ = false;
  forget_started();
}

void NetworkExchange::begin_open() {
  open_ = true;
  forget_started();
}

void NetworkExchange::settle(const HeldBlocks& blocks) {
  held_ = blocks;
  open_ = false;
  backward_done();
}

void NetworkExchange::forget_started() {
  started_ = 0;
  pending_.clear();
  for (Bucket& bucket : buckets_) bucket.waiting = bucket.entries;
}

void NetworkExchange::ready(std::size_t entry) {
  const auto& place = layout_[entry];
  const std::size_t end = end_of(entry);
  if (end == place.offset) return;  // A tensor without elements lies in no bucket.
  for (Bucket& bucket : buckets_) {
    if (bucket.range.first < end && bucket.range.last > place.offset) {
      YOKE_ENSURE(bucket.waiting > 0, place.name, " was ready twice.");
      --bucket.waiting;
    }
  }
  start_ready();
}

void NetworkExchange::backward_done() {
  for (Bucket& bucket : buckets_) bucket.waiting = 0;
  start_ready();
}

void NetworkExchange::start_ready() {
  if (open_) return;
  for (; started_ < buckets_.size() && buckets_[started_].waiting == 0; ++started_) {
    const Bucket& bucket = buckets_[started_];
    const std::size_t bytes = bucket.range.last - bucket.range.first;
    std::vector<std::span<const std::byte>> mine;
    for (const int position : held_.plan.positions_of(communicator_.rank())) {
      const int place = held_.places[static_cast<std::size_t>(position)];
      mine.emplace_back(block(place) + bucket.range.first, bytes);
    }
    std::span<std::byte> out(reduced_.data() + bucket.range.first, bytes);
    pending_.push_back(communicator_.start(
        [plan = held_.plan, mine = std::move(mine), out, dtype = bucket.dtype, topology = topology_](
            comm::Communicator& c) { c.reduce_blocks(plan, mine, out, dtype, topology); }));
  }
}

void NetworkExchange::reduce(double divisor) {
  for (const comm::Work& work : pending_) work.wait();
  constexpr std::size_t kTurn = 2 * optim::kBlockElements;
  layout_.for_each_piece(owned(), kTurn, [&](const tensor::ArenaLayout::Piece& piece) {
    const auto& entry = layout_[piece.entry];
    const std::size_t first = piece.first * size_of(entry.dtype);
    std::byte* total = reduced() + entry.offset + first;
    for (const AddedTensor& added : added_) {  // They lie behind what they are added to.
      if (added.to != piece.entry) continue;
      const std::byte* both[] = {reduced() + layout_[added.entry].offset + first, total};
      fold(both, total, piece.count, entry.dtype);
    }
    divide(total, piece.count, divisor, entry.dtype);
    piece_squares(entry, piece, reduced(), squares());
  });
}

}  // namespace yoke::sync
