#pragma once

#include <optional>
#include <string>

#include "yoke/base/run_folder.h"

namespace yoke::checkpoint {

/// What tells a run's checkpoints from those of another: 32 random hexadecimal digits, in `run.id`
/// of the run's folder and in each manifest. Nothing if there is none, or none that can be read.
std::optional<std::string> run_id_of(const RunFolder& folder);

/// The same; where there is none it becomes that of the checkpoints that lie there, or a new one,
/// and is written. For whoever holds the run. Throws IoError, and CheckpointError if the
/// checkpoints are of several runs.
std::string establish_run_id(const RunFolder& folder);

}  // namespace yoke::checkpoint
