#pragma once

#include <vector>

#include "yoke/sync/exchange.h"

namespace yoke::sync {

/// Ranks that share no memory. Every rank ends with the whole reduced arena. A bucket is started,
/// on the communicator's thread, as soon as its tensors are ready; always in the same order, from
/// the last bucket of parameters to the first, since the order in which hooks fire may differ
/// between ranks. The buckets of buffers follow the last backward.
class NetworkExchange : public Exchange {
 public:
  NetworkExchange(comm::Communicator& communicator, const tensor::ArenaLayout& layout,
                  const ExchangeOptions& options);
  ~NetworkExchange() override;

  std::byte* block(int b) override;
  void begin(const HeldBlocks& blocks) override;
  void begin_open() override;
  void settle(const HeldBlocks& blocks) override;
  void ready(std::size_t entry) override;
  void backward_done() override;
  void reduce(double divisor) override;
  tensor::ByteRange owned_by(int) const override { return {0, layout_.bytes()}; }
  tensor::ByteRange owned() const override { return {0, layout_.bytes()}; }
  bool shared() const override { return false; }
  std::byte* reduced() override { return reduced_.data(); }
  std::span<double> squares() override { return squares_; }

 private:
  struct Bucket {
    tensor::ByteRange range;
    DType dtype = DType::kFloat32;
    std::size_t entries = 0;  ///< tensors that reach into it
    std::size_t waiting = 0;  ///< of them, those not ready yet
  };
  void cut_buckets(std::size_t first_entry, std::size_t last_entry, std::size_t most);
  /// Where the gap behind a tensor ends.
  std::size_t end_of(std::size_t entry) const;
  void start_ready();
  void forget_started();

  comm::Communicator& communicator_;
  tensor::ArenaLayout layout_;
  comm::Topology topology_;
  std::vector<AddedTensor> added_;
  std::vector<std::vector<std::byte>> blocks_;
  std::vector<std::byte> reduced_;
  std::vector<double> squares_;
  std::vector<Bucket> buckets_;  ///< in the order in which they are started
  std::size_t started_ = 0;
  std::vector<comm::Work> pending_;
  HeldBlocks held_;
  bool open_ = false;  ///< who holds what is not known yet
};

}  // namespace yoke::sync
