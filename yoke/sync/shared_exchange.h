#pragma once

#include "yoke/sync/exchange.h"

namespace yoke::sync {

/// All ranks on one host. Section r of shared memory holds the block arenas of rank r; section 0
/// also the one reduced arena, into which every rank writes its slice once; a rank alone with one
/// block leaves the sum where it is. Nothing is copied in between. Buckets would gain nothing
/// (measured: docs/performance.md), so there are none.
class SharedExchange : public Exchange {
 public:
  SharedExchange(comm::Communicator& communicator, const tensor::ArenaLayout& layout,
                 const ExchangeOptions& options);

  std::byte* block(int b) override { return block_of(rank_, b); }
  void begin(const HeldBlocks& blocks) override { held_ = blocks; }
  void begin_open() override {}
  void settle(const HeldBlocks& blocks) override { held_ = blocks; }
  void ready(std::size_t) override {}
  void backward_done() override {}
  void reduce(double divisor) override;
  tensor::ByteRange owned_by(int rank) const override { return layout_.slice(rank, ranks_); }
  tensor::ByteRange owned() const override { return owned_; }
  bool shared() const override { return true; }
  std::byte* reduced() override;
  std::span<double> squares() override;

 private:
  std::byte* block_of(int rank, int b);
  bool sum_is_the_block() const { return alone_ && held_.plan.blocks().size() == 1; }

  tensor::ArenaLayout layout_;
  int rank_;
  int ranks_;
  bool alone_;
  int most_blocks_;
  tensor::ByteRange owned_;
  std::shared_ptr<comm::SharedSections> blocks_;
  std::shared_ptr<comm::SharedSections> result_;
  std::vector<AddedTensor> added_;
  HeldBlocks held_;
};

}  // namespace yoke::sync
