#pragma once

#include <string>
#include <vector>

#include "yoke/cli/worker.h"
#include "yoke/net/supervisor.h"

namespace yoke::cli {

/// What was found out about a run before any worker was started.
struct Beforehand {
  std::string described;  ///< what was decided, as a table
  /// Set, with rank -1, if the run cannot be: bad data, a model that does not fit them, a warm-up
  /// that is longer than the run, too little memory. It was told on stderr.
  std::optional<net::ProcessFailure> failure;
};

/// Loads the data and builds the model once, in a child process: this one must not have run an
/// operation of libtorch when it forks workers. Call it where there is one thread. Costs a fork and
/// what a worker takes to load; throws ResourceError when there is no process or descriptor left.
Beforehand look_beforehand(const Assignment& assignment, int workers);

}  // namespace yoke::cli
