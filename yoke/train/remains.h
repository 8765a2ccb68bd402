#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "yoke/sync/buffer_sync.h"
#include "yoke/sync/flat_state.h"
#include "yoke/train/state.h"
#include "yoke/train/step.h"

namespace yoke::train {

/// What of S_k does not lie in the arena, and what else a worker must know to take another's place:
/// counts of updates, buffers, progression, the record of the step that made S_k, and what of its
/// business is done. Bytes of this machine's own order: they stay among workers of one build.
class Remains {
 public:
  /// Of the sitting and its states.
  struct Marks {
    std::int64_t first_step = 0;       ///< at which the sitting began
    std::int64_t saved_step = -1;      ///< of the newest checkpoint
    std::int64_t evaluated_step = -1;  ///< of the newest evaluation
  };

  Remains(sync::FlatState& state, sync::BufferSync& buffers, Progression& progression,
          StepRecord& record, Marks& marks)
      : state_(state),
        buffers_(buffers),
        progression_(progression),
        record_(record),
        marks_(marks) {}

  /// The most bytes that gather() returns, for steps of up to `most_micro_batches`.
  static std::size_t most_bytes(const sync::GradientSync& gradients,
                                std::int64_t most_micro_batches);
  std::vector<std::byte> gather() const;
  /// Throws InternalError for bytes of another model.
  void adopt(std::span<const std::byte> bytes) const;

 private:
  sync::FlatState& state_;
  sync::BufferSync& buffers_;
  Progression& progression_;
  StepRecord& record_;
  Marks& marks_;
};

}  // namespace yoke::train
