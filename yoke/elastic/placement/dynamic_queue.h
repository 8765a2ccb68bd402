#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "yoke/comm/block_plan.h"
#include "yoke/elastic/placement/leaf_block.h"

namespace yoke::elastic {

struct DynamicOptions {
  /// A draw is the largest block of at most 1 / (share * W) of the leaves that nobody has drawn
  /// yet, W living workers: large blocks first, single leaves at the end. 1 is guided
  /// self-scheduling (Polychronopoulos, Kuck 1987), 2 the more careful share of factoring (Hummel,
  /// Schonberg, Flynn 1992), for workers that differ in speed.
  int share = 2;
  /// When all is drawn, a worker without work repeats a block that another still holds, the one
  /// that was drawn first, and each block once at most.
  bool backup = true;
};

/// Placement while the step runs: a worker that is free draws the next aligned block of leaves.
/// Nobody needs to know how fast anybody is; the slowest worker holds the others up by about one
/// leaf. Blocks are drawn in leaf order, so draws that follow each other become one block of the
/// plan; there are at most 4 W (1 + ln(V / W)) draws with the default share, when nobody is lost.
///
/// Thread-safe, and deterministic: the same calls in the same order have the same answers. Nothing
/// waits.
class DynamicQueue {
 public:
  /// `workers` are numbered 0 .. workers-1. Throws ConfigError for shares or workers below 1.
  DynamicQueue(std::int64_t leaves, int workers, const DynamicOptions& options = {});

  struct Draw {
    LeafBlock block;
    bool backup = false;  ///< another worker holds it too
  };
  /// The next block for a worker that is free. Nothing when there is none for it now; until done()
  /// it may ask again, as a worker that is lost gives its blocks back. A worker that was lost gets
  /// nothing.
  std::optional<Draw> draw(int worker);

  enum class Verdict {
    kCounts,   ///< the first result of this block: keep it
    kSecond,   ///< another's counts already, with the same bits: drop it
    kDiffers,  ///< another's counts already, and this one has other bits: one of them computes
               ///< wrong
    kLost,     ///< this worker was declared lost: drop it
  };
  /// A worker has computed a block that it drew. `bits` is a hash of the result, equal for equal
  /// bits; where all give 0 nothing is compared. InternalError for a block that it does not hold.
  Verdict finish(int worker, const LeafBlock& block, std::uint64_t bits = 0);

  /// A worker is gone: what it held, and nobody repeats, is drawn anew. So is what it has finished,
  /// unless its memory outlives it (design, section 7).
  void lost(int worker, bool results_survive = false);

  /// Every block has a result that counts.
  bool done() const;
  /// Who holds the result of which leaves: for reduce_blocks. Only when done().
  comm::BlockPlan plan() const;

 private:
  static constexpr int kNobody = -1;
  struct Drawn {
    int level;
    std::uint64_t number;      ///< of its first draw
    std::vector<int> holders;  ///< who computes it now
    int owner = kNobody;       ///< whose result counts
    bool repeated = false;
    std::uint64_t bits = 0;
  };

  std::optional<Draw> draw_free(int worker);
  std::optional<Draw> draw_backup(int worker);
  void give_back(std::int64_t first, int level);
  std::size_t checked(int worker) const;

  const std::int64_t leaves_;
  const DynamicOptions options_;
  mutable std::mutex mutex_;  ///< guards all below
  std::vector<bool> living_;
  std::map<std::int64_t, int> free_;  ///< levels of the blocks nobody has, by first leaf
  std::int64_t free_leaves_ = 0;
  std::map<std::int64_t, Drawn> drawn_;  ///< by first leaf
  std::uint64_t draws_ = 0;
};

}  // namespace yoke::elastic
