#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "yoke/comm/communicator.h"
#include "yoke/sync/held_blocks.h"

namespace yoke::sync {

/// What a rank asks of all, heard by all after the same step.
struct Wishes {
  bool stop = false;    ///< to save, and end
  bool change = false;  ///< to meet in another generation: a worker comes or goes
};

/// What a rank says about one of its micro-batches.
struct MicroBatchResult {
  std::int64_t micro_batch = -1;  ///< -1: none
  std::int64_t weight = 0;        ///< samples or tokens
  double loss = 0;                ///< mean over the micro-batch
};

/// A leaf that a rank computed, also or only to be compared with what another made of it.
struct LeafCheck {
  std::int64_t leaf = -1;
  std::uint64_t input = 0;  ///< hash of what it was computed from
  std::uint64_t bits = 0;   ///< of what came out: LeafHash
};

/// What the ranks hold at most, for the size of their message.
struct SummaryLimits {
  std::size_t tensors = 0;   ///< presence flags
  std::size_t integers = 0;  ///< bytes of integer buffers
  std::size_t results = 0;   ///< micro-batches of a rank
  std::size_t blocks = 0;    ///< of a rank, where who holds what is decided in the step
  std::size_t checks = 0;    ///< leaves of a rank that are compared
};

/// The small things of a step that all ranks must know: which tensors had a gradient anywhere,
/// which buffers changed, what the integer buffers became, the losses, and whether somebody wants
/// to stop. One all-gather of a fixed size; it is also the barrier between "all blocks are written"
/// and "somebody reads them".
class Summary {
 public:
  explicit Summary(const SummaryLimits& limits);

  void clear();
  void set_present(std::size_t tensor) { mine_present()[tensor] = std::byte{1}; }
  void set(const Wishes& mine) {
    header().stop = mine.stop ? 1 : 0;
    header().change = mine.change ? 1 : 0;
  }
  /// This rank's integer buffers after its micro-batches.
  std::span<std::byte> integers();
  void set_integers_valid() { header().integers_valid = 1; }
  void add(const MicroBatchResult& result);
  void add(const LeafCheck& check);
  /// This rank holds the sum of the block, as its block `place`. Others may hold it too.
  void add(const comm::Block& block, int place);
  /// What it took this rank to compute.
  void set_seconds(double seconds) { header().seconds = seconds; }

  /// Collective. `micro_batches` of the step, in leaves of `leaf`. Throws InternalError if one is
  /// missing, or stands twice though no blocks were told.
  void gather(comm::Communicator& communicator, std::int64_t micro_batches, std::int64_t leaf = 1);

  // After gather(), equal on all ranks:
  bool present(std::size_t tensor) const { return present_[tensor] != 0; }
  /// Of any rank.
  const Wishes& wishes() const { return wishes_; }
  /// Ranks that had micro-batches, with their integer buffers.
  struct Integers {
    int rank;
    std::span<const std::byte> bytes;
  };
  std::vector<Integers> all_integers() const;
  struct Result : MicroBatchResult {
    int rank = 0;
  };
  /// All micro-batches, in their order.
  const std::vector<Result>& results() const { return results_; }
  struct Check : LeafCheck {
    int rank = 0;
  };
  /// By leaf, then by rank.
  const std::vector<Check>& checks() const { return checks_; }
  /// By rank.
  const std::vector<double>& seconds() const { return seconds_; }
  /// Whose sum of which block counts: of two that hold one, the lower rank's. Only if blocks were
  /// told.
  const HeldBlocks& held() const { return *held_; }

 private:
  struct HeldBlock {
    comm::Block block;
    int place;
  };
  struct Header {
    std::int64_t results, blocks, checks;
    double seconds;
    std::uint32_t stop;
    std::uint32_t change;
    std::uint64_t integers_valid;
  };
  Header& header() { return *reinterpret_cast<Header*>(mine_.data()); }
  const Header& header_of(int rank) const;
  std::span<std::byte> mine_present() { return {mine_.data() + sizeof(Header), limits_.tensors}; }

  /// The `index`-th item of a rank's list that begins at `at`.
  template <typename Item>
  Item item(int rank, std::size_t at, std::int64_t index) const;
  template <typename Item>
  void append(std::int64_t& count, std::size_t at, std::size_t most, const Item& item);
  void gather_results(std::int64_t micro_batches, std::int64_t leaf);
  void gather_held();

  SummaryLimits limits_;
  std::size_t integers_at_, results_at_, blocks_at_, checks_at_, bytes_;
  std::vector<std::byte> mine_, all_;
  int ranks_ = 0;
  std::vector<std::uint8_t> present_;
  Wishes wishes_;
  std::vector<Result> results_;
  std::vector<Check> checks_;
  std::vector<double> seconds_;
  std::optional<HeldBlocks> held_;
};

}  // namespace yoke::sync
