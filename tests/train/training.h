#pragma once

#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "yoke/base/files.h"
#include "yoke/net/world.h"
#include "yoke/train/run.h"

/// Short trainings for tests: the three models on the repository's own data, small enough that a
/// step takes milliseconds.
namespace yoke::test {

enum class Ranks { kThreads, kProcesses };

/// Where and how the same plan is run.
struct Placement {
  int workers = 1;
  std::string transport = "shm";
  std::string topology = "auto";
  std::int64_t bucket_bytes = 4 << 20;
  Ranks ranks = Ranks::kThreads;
  std::string policy = "even";  ///< elastic.placement
};
std::ostream& operator<<(std::ostream& out, const Placement& placement);

/// mlp with dropout on digits: 7 micro-batches, and 3 at the end of an epoch.
train::RunConfig digits();
/// cnn with batch norm and dropout on images: 8 micro-batches.
train::RunConfig mnist();
/// gpt with dropout, below 100,000 parameters, AdamW, clipped: 6 micro-batches.
train::RunConfig gpt();

/// On digits, with weights that stand in several layers of the list; see tied_model.h.
train::RunConfig tied();

/// Trains in `folder` as placed, from its newest checkpoint on; `stop_after` as in RunOptions.
/// Returns rank 0's report.
train::RunReport train_in(const std::filesystem::path& folder, train::RunConfig config,
                          const Placement& placement,
                          std::optional<std::int64_t> stop_after = std::nullopt);

/// The state hash of a whole run in a folder of its own.
std::string state_after(const train::RunConfig& config, const Placement& placement);

}  // namespace yoke::test
