#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "yoke/comm/communicator.h"

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

/// The small things of a step that all ranks must know: which tensors had a gradient anywhere,
/// which buffers changed, what the integer buffers became, the losses, and whether somebody wants
/// to stop. One all-gather of a fixed size; it is also the barrier between "all blocks are written"
/// and "somebody reads them".
class Summary {
 public:
  /// `tensors`: presence flags. `integers`: bytes of integer buffers. `most`: the most
  /// micro-batches a rank has.
  Summary(std::size_t tensors, std::size_t integers, std::size_t most);

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

  /// Collective. Throws InternalError if one of the `micro_batches` of the step is missing or
  /// stands twice.
  void gather(comm::Communicator& communicator, std::int64_t micro_batches);

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

 private:
  struct Header {
    std::int64_t results;
    std::uint32_t stop;
    std::uint32_t change;
    std::uint64_t integers_valid;
  };
  Header& header() { return *reinterpret_cast<Header*>(mine_.data()); }
  const Header& header_of(int rank) const;
  std::span<std::byte> mine_present() { return {mine_.data() + sizeof(Header), tensors_}; }

  std::size_t tensors_, integers_, most_;
  std::size_t integers_at_, results_at_, bytes_;
  std::vector<std::byte> mine_, all_;
  int ranks_ = 0;
  std::vector<std::uint8_t> present_;
  Wishes wishes_;
  std::vector<Result> results_;
};

}  // namespace yoke::sync
