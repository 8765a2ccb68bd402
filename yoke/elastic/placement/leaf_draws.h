#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "yoke/comm/communicator.h"
#include "yoke/elastic/placement/leaf_block.h"
#include "yoke/net/world.h"

namespace yoke::elastic {

/// What the workers of one generation write and read while they draw: which draw comes next, and
/// which are done. Thread-safe; nothing waits but for the transport.
class DrawBoard {
 public:
  virtual ~DrawBoard() = default;
  /// Numbers 0, 1, 2 ... over all workers and steps, each once.
  virtual std::int64_t next_number() = 0;
  /// Marks hold a step's stamp; later stamps are larger.
  virtual void mark_done(int draw, std::uint64_t stamp) = 0;
  virtual bool is_done(int draw, std::uint64_t stamp) = 0;
  /// True for one worker (over a network, for a few that ask at the same moment).
  virtual bool claim_repeat(int draw, std::uint64_t stamp) = 0;

  /// In memory that all share where there is some, else served by rank 0, at a round trip a draw.
  /// Collective. `draws`: the most of a step. Throws CommunicationError.
  static std::unique_ptr<DrawBoard> make(const World& world, comm::Communicator& communicator,
                                         int draws, Clock::duration timeout);
};

/// Dynamic placement of a run: a worker that is free draws the next aligned block of leaves. The
/// blocks and their order are those of DynamicQueue, the same for all; who draws which is decided
/// while the step runs. When all are drawn, a worker without work repeats one that is not done yet,
/// the oldest first, and each once: the first result counts, which are the same bits.
class LeafDraws {
 public:
  /// `workers`: of the generation.
  LeafDraws(std::unique_ptr<DrawBoard> board, int workers);

  /// The most draws of a step of so many leaves.
  static int most_draws(std::int64_t leaves, int workers);

  /// The next step; all workers call it with the same numbers, and none before the step before is
  /// over for all.
  void begin(std::int64_t leaves);
  struct Draw {
    LeafBlock block;
    bool backup = false;  ///< another is at it too
  };
  std::optional<Draw> next();
  /// Another has done what this worker drew last, which may be dropped.
  bool overtaken();
  /// This worker has done what it drew last.
  void finish();

 private:
  std::optional<Draw> repeat();

  std::unique_ptr<DrawBoard> board_;
  int workers_;
  std::int64_t leaves_ = -1;
  std::vector<LeafBlock> blocks_;  ///< of leaves_ leaves, in the order in which they are drawn
  std::uint64_t stamp_ = 0;
  std::int64_t base_ = 0;  ///< number of the step's first draw
  int current_ = -1;
  std::vector<bool> mine_;  ///< drawn by this worker in this step
};

}  // namespace yoke::elastic
