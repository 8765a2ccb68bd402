#pragma once

#include <string>

#include "yoke/base/clock.h"
#include "yoke/cli/existing_run.h"
#include "yoke/cli/run_lock.h"
#include "yoke/cli/worker.h"

namespace yoke::cli {

/// One call of `yoke train`, understood.
struct TrainRequest {
  Assignment assignment;
  RunOrigin origin;
  std::string resume_command;
  int workers = 1;
  bool fresh = false;
  bool json = false;  ///< the report on stdout as JSON
  Clock::duration grace = std::chrono::seconds(60);
};

/// Trains with workers of our own: forked from this process, supervised by it. Returns the exit
/// code.
int train_with_own_workers(const TrainRequest& request);

/// Trains as one rank of a job that torchrun, mpirun, srun or `yoke launch` has started.
int train_as_rank(const TrainRequest& request);

/// Makes or checks the folder, notes where the run's file lay, and removes what an earlier sitting
/// said about its failure. `lock` is that of the folder. Returns true if the run is finished.
bool prepare(const TrainRequest& request, RunLock& lock);

/// The report of the run, on stdout.
void show_report(const TrainRequest& request);

}  // namespace yoke::cli
