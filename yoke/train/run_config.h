#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "yoke/base/config_tree.h"
#include "yoke/data/dataset.h"
#include "yoke/model/registry.h"
#include "yoke/optim/optimizer.h"
#include "yoke/optim/schedule.h"

namespace yoke::train {

/// All that a run file can say, typed. `bind` gives each field its key; docs/configuration.md is
/// made from it.
struct RunConfig {
  data::DataOptions data;
  bool drop_last = false;
  model::ModelOptions model;
  optim::OptimizerOptions optimizer;
  optim::ScheduleOptions schedule;

  struct Train {
    std::int64_t seed = 0;
    std::int64_t batch = 64;  ///< samples of a global batch
    std::int64_t micro_batch =
        0;                  ///< samples of a micro-batch; 0: an eighth of the batch, rounded up
    std::int64_t leaf = 1;  ///< micro-batches of a leaf
    std::int64_t epochs = 1;
    std::int64_t steps = 0;       ///< length of the run; 0: epochs times the steps of an epoch
    std::int64_t threads = 1;     ///< of each worker; part of the plan
    std::int64_t eval_every = 0;  ///< steps; 0: at the end of each epoch
    std::int64_t eval_batch = 256;
    std::int64_t hash_every = 0;        ///< steps; 0: only the last state
    std::int64_t checkpoint_every = 0;  ///< steps; 0: at the end, and when stopped
    std::int64_t keep_last = 2;         ///< checkpoints
    std::int64_t keep_every = 0;        ///< steps; checkpoints of multiples are kept for ever
    std::int64_t keep_best = 0;         ///< checkpoints with the lowest loss of an evaluation
    double clip_norm = 0.0;             ///< 0: no clipping
    bool mixed = false;  ///< let workers with different fingerprints join; the promise is off
    std::int64_t sample_characters = 0;  ///< gpt: length of the sample of text at the end
  } train;

  struct Comm {
    std::string transport = "auto";
    std::string topology = "auto";
    std::int64_t bucket_bytes = 4 << 20;
    double timeout = 60;        ///< seconds, of every collective
    double save_timeout = 600;  ///< seconds that the others wait while rank 0 saves
  } comm;

  struct Elastic {
    std::int64_t restarts = 3;  ///< failures in a row, without a step between, that are mended
    std::int64_t min_workers = 1;
    double lease = 2;          ///< seconds of silence after which a worker is declared dead
    double hang_timeout = 10;  ///< seconds; the least time-out of a section
    double hang_factor = 10;   ///< the time-out of a section over its longest stay so far
    std::string placement = "even";  ///< elastic/placement/make_policy.h
    std::string weights;             ///< by rank, for the placement "weighted"
  } elastic;

  std::int64_t micro_batch() const {
    return train.micro_batch > 0 ? train.micro_batch : (train.batch + 7) / 8;
  }
};

/// Declares every key of the tree, bound to the fields of `config`.
void bind(ConfigTree& tree, RunConfig& config);

/// Checks what no single key can tell (micro-batch above the batch, Nesterov without momentum, a
/// warm-up above train.steps ...). What needs the data as well, Job's constructor checks.
/// Throws ConfigError.
void check(const RunConfig& config);

/// Throws ConfigError: the run has done more steps than it is asked to have.
[[noreturn]] void throw_gone_beyond(const RunConfig& config, std::int64_t done, std::int64_t asked);

/// True for keys that fix the bits of a run (the plan); the others are placement, or how the run is
/// watched. The length of the run is plan where the schedule depends on it.
bool is_plan_key(std::string_view key, const RunConfig& config);

}  // namespace yoke::train
