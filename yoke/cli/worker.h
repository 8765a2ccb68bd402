#pragma once

#include <functional>
#include <optional>
#include <string>

#include "yoke/base/run_folder.h"
#include "yoke/cli/configuration.h"
#include "yoke/elastic/membership.h"
#include "yoke/net/world.h"
#include "yoke/observe/progress.h"

namespace yoke::cli {

/// What every rank of a run is given.
struct Assignment {
  const Configuration& configuration;
  RunFolder folder;
  std::string config_folder;  ///< of the run's file
  std::optional<std::int64_t> stop_after;
  Progress::Style progress = Progress::Style::kNone;  ///< of rank 0
};

/// Makes the folder of a new run, or checks that an old one has the same plan (ConfigError names
/// what differs); `fresh` sets an old one aside first. Returns true if the run is finished: nothing
/// is left to do.
bool prepare_folder(const Assignment& assignment, bool fresh);

/// What was decided, as a table: data, batch arithmetic, model, layout, threads. Loads the data,
/// builds the model, and throws what train::run would throw for them.
std::string describe(const Assignment& assignment, int workers);

/// Threads of each worker.
std::int64_t threads_of(const Assignment& assignment);

/// Keys of the section [elastic].
struct ElasticValues {
  std::int64_t restarts, min_workers;
  double lease, hang_timeout, hang_factor;
};
ElasticValues elastic_of(const Assignment& assignment);

/// "auto", "shm" or "tcp".
std::string transport_of(const Assignment& assignment);

/// From here on SIGINT, SIGTERM, SIGHUP and SIGUSR1, unless ignored, ask this process to finish its
/// step, save, and end; any but SIGUSR1 for the second time ends it at once, and so does one that
/// no first step has followed within 3 s. Call it before anything that takes long.
void heed_stop_signals();

/// One rank of a run, in a world that stands: trains, notes itself in ranks/ when all have joined,
/// and returns the exit code. Rank 0 first writes `described`, what was decided, to stderr.
int work(const Assignment& assignment, const World& world, const std::string& described);

/// One worker of an elastic run (train::run with a Membership); `host_memory` as in RunOptions. It
/// first writes `described` to stderr, if it is given that.
int work_elastically(const Assignment& assignment, elastic::Membership& membership, int host_memory,
                     const std::string& described);

/// Runs `task`. An exception goes to stderr as one message, to `on_error`, and becomes its exit
/// code.
int guarded(const std::function<int()>& task,
            const std::function<void(const std::string&)>& on_error = {});

}  // namespace yoke::cli
