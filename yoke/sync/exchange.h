#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "yoke/comm/block_plan.h"
#include "yoke/comm/communicator.h"
#include "yoke/sync/held_blocks.h"
#include "yoke/tensor/arena_layout.h"

namespace yoke::sync {

/// One tensor of the layout whose total is added to that of another before the division (tied
/// weights: design, section 2.5). What stands for it in reduced() means nothing then.
struct AddedTensor {
  std::size_t to = 0, entry = 0;
};

struct ExchangeOptions {
  std::size_t bucket_bytes =
      4 << 20;  ///< network: what is sent at once, rounded up to whole units of the layout
  comm::Topology topology = comm::Topology::kAuto;
  std::size_t parameters =
      0;  ///< the first tensors of the layout; what follows are buffers, and is sent last
  int most_blocks = 1;                  ///< the most that this or any other rank holds in any step
  std::vector<AddedTensor> added = {};  ///< in the order of addition
};

/// How the gradients of the ranks become one. Two kinds: over shared memory each rank reduces its
/// slice straight out of the others' arenas, after backward; over a network buckets travel while
/// backward goes on.
///
/// A step: begin(blocks) -> the folder writes block(b), with ready(entry) after each tensor's last
/// one -> backward_done()
/// -> [all ranks have called backward_done(): the summary's all-gather] -> reduce(divisor) -> a
/// barrier -> reduced() may be read until the next begin(). Where it turns out in the step who
/// computes what: begin_open() -> the folder writes block(b) -> [the all-gather] -> settle(blocks)
/// -> reduce(divisor) ... Not thread-safe. Collective errors as in comm/communicator.h.
class Exchange {
 public:
  virtual ~Exchange() = default;

  /// Where this rank writes the sum of its block `b`; layout.bytes().
  virtual std::byte* block(int b) = 0;
  virtual void begin(const HeldBlocks& blocks) = 0;
  virtual void begin_open() = 0;
  /// Equal on all ranks.
  virtual void settle(const HeldBlocks& blocks) = 0;
  /// All blocks of this tensor are written.
  virtual void ready(std::size_t entry) = 0;
  /// All blocks of all tensors are written.
  virtual void backward_done() = 0;
  /// Adds the blocks of all ranks in the canonical order, then tied uses, and divides once.
  /// Afterwards owned() of reduced() holds the mean.
  virtual void reduce(double divisor) = 0;
  /// What a rank reduces, and updates where the state is shared.
  virtual tensor::ByteRange owned_by(int rank) const = 0;
  /// The same of this rank.
  virtual tensor::ByteRange owned() const = 0;
  /// True: one memory for all ranks, whole after a barrier. False: each rank has its own, whole at
  /// once.
  virtual bool shared() const = 0;
  virtual std::byte* reduced() = 0;
  /// One double a block of 1,024 elements, where owners leave their sums of squares; as shared as
  /// reduced() is.
  virtual std::span<double> squares() = 0;

  /// By the communicator's transport. Collective.
  static std::unique_ptr<Exchange> make(comm::Communicator& communicator,
                                        const tensor::ArenaLayout& layout,
                                        const ExchangeOptions& options);
};

}  // namespace yoke::sync
