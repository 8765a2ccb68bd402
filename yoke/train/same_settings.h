#pragma once

#include "yoke/net/world.h"
#include "yoke/train/run.h"

namespace yoke::train {

/// Compares this rank's configuration with rank 0's, before anything is exchanged that depends on
/// it: ranks that were started by hand, or with other environments, may have been told different
/// things. Where the data lies may differ. Throws ConfigError on the rank that differs, naming the
/// keys and both values. One read of the store; rank 0 does not wait. Every rank calls it once a
/// sitting, before the communicator is made.
void require_same_settings(const World& world, const RunConfig& config, const RunOptions& options);

}  // namespace yoke::train
