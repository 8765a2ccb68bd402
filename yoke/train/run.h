#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "yoke/base/run_folder.h"
#include "yoke/checkpoint/snapshot.h"
#include "yoke/elastic/membership.h"
#include "yoke/model/registry.h"
#include "yoke/net/world.h"
#include "yoke/observe/progress.h"
#include "yoke/train/run_config.h"

namespace yoke::train {

struct RunOptions {
  RunFolder folder{"runs/run"};
  /// Folder of the run file: relative data paths are looked for there too.
  std::string config_folder{};
  /// End this sitting after so many steps, as if interrupted.
  std::optional<std::int64_t> stop_after{};
  Progress::Style progress = Progress::Style::kNone;
  /// Set (by a signal handler, for example) to stop after the step in flight, save, and return
  /// "stopped".
  const std::atomic<bool>* stop_requested = nullptr;
  /// Called on every rank when all of a generation have joined and its first step is about to
  /// begin: from here on a stop ends in a saved state.
  std::function<void(const World&)> on_start{};
  /// Memory of this host that outlives its workers (net::make_host_memory); -1: none.
  int host_memory = -1;
};

/// The end of a sitting; what report.json holds.
struct RunReport {
  /// "finished", "stopped" (saved; the same command goes on), or "left" (the others go on).
  std::string status;
  std::int64_t steps = 0;
  std::int64_t steps_per_epoch = 0;
  std::int64_t samples = 0;
  double seconds = 0;             ///< of this sitting
  double samples_per_second = 0;  ///< of this sitting
  std::map<std::string, double>
      metrics;  ///< "loss", "test_loss", "test_accuracy", "test_perplexity" ...
  std::string state_sha256;
  std::string promise;  ///< "same bits", or why it is off
  std::string sample;   ///< gpt: text written by the model
};

/// Makes the folder of a new run, or checks that an old one belongs to the same plan: the resolved
/// configuration is compared and the error (ConfigError) names the keys that differ; so it does
/// when the run has gone beyond the length that is asked for. A finished run whose length has
/// grown, where the schedule allows that, goes on. `fresh` sets an old folder aside (RUN.old-1 ...)
/// first. Called once for a run, by the launcher or by rank 0.
enum class Prepared { kNew, kResume, kFinished };
Prepared prepare_folder(const RunFolder& folder, const ConfigTree& tree, bool fresh);

/// Trains. Collective: every rank of `world` calls it with the same arguments; each needs no more
/// than the shared folder. Continues from the newest complete checkpoint of the folder, else starts
/// anew. Rank 0 writes the folder's files. Throws what base/error.h lists; the folder stays
/// resumable.
RunReport run(const RunConfig& config, const World& world, const RunOptions& options,
              const model::Registry& registry);

/// The same as one worker of an elastic run: trains in one generation after the other, until the
/// run ends or this worker is dismissed. A generation that breaks (CommunicationError) is followed
/// by the next: the newest state that any of its workers holds is completed, copied to those who
/// lack it, and trained on. Nothing of this needs a checkpoint, unless no worker and no memory of
/// the host holds a whole state.
RunReport run(const RunConfig& config, elastic::Membership& membership, const RunOptions& options,
              const model::Registry& registry);

/// What `--dry-run` prints: batch arithmetic, model, layout, threads, and what lies where.
std::string describe(const RunConfig& config, int world_size, const model::Registry& registry,
                     const std::string& config_folder);

struct Evaluation {
  std::int64_t step = 0;
  std::map<std::string, double> metrics;
  std::string sample;
};
/// Evaluates a checkpoint (the newest, or that of `step`) on the run's test data.
Evaluation evaluate(const RunConfig& config, const RunFolder& folder,
                    std::optional<std::int64_t> step, const std::string& config_folder,
                    const model::Registry& registry);

struct Replayed {
  std::string gradient_sha256;  ///< of the gradients as they enter their leaf (mean loss times
                                ///< weight), tensors by name
  double loss = 0;
  std::int64_t samples = 0;
  std::string warning;  ///< set when this machine's fingerprint differs from the run's
};
/// Computes one micro-batch of one step again, from the newest state at or before it, alone.
Replayed replay(const RunConfig& config, const RunFolder& folder, std::int64_t step,
                std::int64_t micro_batch, const std::string& config_folder,
                const model::Registry& registry);

/// Of a checkpoint, without building the model. Throws CheckpointError.
checkpoint::StateHashes hash(const RunFolder& folder, std::optional<std::int64_t> step);

}  // namespace yoke::train
