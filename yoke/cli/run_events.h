#pragma once

#include <string>

#include "yoke/base/run_folder.h"

namespace yoke::cli {

/// Appends a failure to events.jsonl, when the workers, which write it too, have ended. `kind`: as
/// in failure.json.
void note_failure(const RunFolder& folder, const std::string& kind, int rank);

/// "checkpoints/step-00000300", the state that the next sitting starts from; empty before the
/// first.
std::string newest_state(const RunFolder& folder);

}  // namespace yoke::cli
