#pragma once

#include <cstdint>
#include <limits>

#include "yoke/checkpoint/reader.h"
#include "yoke/checkpoint/snapshot.h"
#include "yoke/sync/flat_state.h"
#include "yoke/sync/gradient_sync.h"

namespace yoke::train {

/// What S_k holds besides the model and the optimizer.
struct Progression {
  std::int64_t step = 0;
  double best_loss = std::numeric_limits<double>::infinity();  ///< lowest loss of an evaluation
  std::int64_t best_step = -1;                                 ///< the state that had it
};

/// Views of all of S_k; valid until the next update.
checkpoint::Snapshot snapshot_of(const sync::FlatState& state, const sync::BufferSync& buffers,
                                 const Progression& progression);

/// Collective: everything becomes what the checkpoint holds. Throws CheckpointError if it is of
/// another model.
void restore(const checkpoint::Reader& reader, sync::FlatState& state, sync::BufferSync& buffers,
             Progression& progression);

}  // namespace yoke::train
