#include "yoke/sync/shared_exchange.h"

#include "yoke/base/error.h"
#include "yoke/optim/norm.h"
#include "yoke/sync/fold.h"
#include "yoke/sync/squares.h"

namespace yoke::sync {

SharedExchange::SharedExchange(comm::Communicator& communicator, const tensor::ArenaLayout& layout,
                               const ExchangeOptions& options)
    : layout_(layout),
      rank_(communicator.rank()),
      ranks_(communicator.size()),
      alone_(communicator.size() == 1),
      most_blocks_(options.most_blocks),
      owned_(layout.slice(communicator.rank(), communicator.size())),
      blocks_(communicator.share(layout.bytes() * static_cast<std::size_t>(options.most_blocks))),
      result_(communicator.share(layout.bytes() + layout.blocks() * sizeof(double))),
      added_(options.added),
      held_(HeldBlocks::in_order(comm::BlockPlan::even(1, communicator.size()))) {}

std::byte* SharedExchange::block_of(int rank, int b) {
  YOKE_ENSURE(b < most_blocks_, "block ", b, " of ", most_blocks_);
  return blocks_->of(rank).data() + static_cast<std::size_t>(b) * layout_.bytes();
}

std::byte* SharedExchange::reduced() {
  return sum_is_the_block() ? block_of(0, held_.places[0]) : result_->of(0).data();
}

std::span<double> SharedExchange::squares() {
  return {reinterpret_cast<double*>(result_->of(0).data() + layout_.bytes()), layout_.blocks()};
}

void SharedExchange::reduce(double divisor) {
  std::vector<const std::byte*> arenas;
  for (const comm::Block& block : held_.plan.blocks())
    arenas.push_back(block_of(block.owner, held_.places[arenas.size()]));
  std::vector<const std::byte*> operands(arenas.size());
  const auto total = [&](std::size_t at, std::byte* out, std::size_t count, DType dtype) {
    for (std::size_t b = 0; b < arenas.size(); ++b) operands[b] = arenas[b] + at;
    held_.plan.evaluate(operands, out, count, dtype);
  };
  // A turn stays in the first-level cache from the sum to the squares.
  constexpr std::size_t kTurn = 2 * optim::kBlockElements;
  layout_.for_each_piece(owned_, kTurn, [&](const tensor::ArenaLayout::Piece& piece) {
    const auto& entry = layout_[piece.entry];
    const std::size_t first = piece.first * size_of(entry.dtype);
    std::byte* out = reduced() + entry.offset + first;
    total(entry.offset + first, out, piece.count, entry.dtype);
    for (const AddedTensor& added : added_) {
      if (added.to != piece.entry) continue;
      alignas(64) std::byte use[kTurn * sizeof(double)];
      total(layout_[added.entry].offset + first, use, piece.count, entry.dtype);
      const std::byte* both[] = {use, out};
      fold(both, out, piece.count, entry.dtype);
    }
    divide(out, piece.count, divisor, entry.dtype);
    piece_squares(entry, piece, reduced(), squares());
  });
}

}  // namespace yoke::sync
