#pragma once

#include <nlohmann/json_fwd.hpp>

#include "yoke/base/fault.h"
#include "yoke/base/run_folder.h"
#include "yoke/checkpoint/attempt.h"
#include "yoke/checkpoint/snapshot.h"

namespace yoke::checkpoint {

/// Writes `checkpoints/step-N/` so that a reader finds it whole or not at all, also after SIGKILL
/// at any system call or a power cut: the files go to a temporary folder, each with fsync; then the
/// manifest, with the checksums of all and its own; then the folder is renamed, then LATEST is
/// replaced, and only then are old ones removed. `extra` is kept in the manifest under "run".
/// Throws IoError, or Fenced, and nothing else: the checkpoints that were there are there still,
/// and what was written of this one is removed, unless it was complete. Fault points checkpoint.1
/// to checkpoint.7 lie before each of these steps and after the last.
///
/// The manifest names each logical tensor with its dtype, shape and pieces {file, offset, first,
/// count}, count elements from element `first` on: a reader that cuts the model otherwise needs
/// nothing else. Many ranks write one checkpoint together through Attempt.
void write(const RunFolder& folder, const Snapshot& snapshot, const nlohmann::json& extra,
           const WriteOptions& options, FaultPlan& faults);

/// Removes what an interrupted write has left behind.
void remove_leftovers(const RunFolder& folder);

}  // namespace yoke::checkpoint
