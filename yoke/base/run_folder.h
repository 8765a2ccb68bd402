#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace yoke {

/// Where things lie in a run's folder. Other programs read these names; they are fixed
/// (docs/run-folder.md).
class RunFolder {
 public:
  /// `name_or_path`: a bare name lies under `runs/`, anything with a slash is a path. Throws
  /// ConfigError where no folder is named ("", ".", "/", "a/..").
  static RunFolder named(const std::string& name_or_path);
  explicit RunFolder(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path config() const { return root_ / "config.resolved.toml"; }
  std::filesystem::path report() const { return root_ / "report.json"; }
  std::filesystem::path failure() const { return root_ / "failure.json"; }
  std::filesystem::path metrics() const { return root_ / "metrics.jsonl"; }
  std::filesystem::path ledger() const { return root_ / "ledger.jsonl"; }
  std::filesystem::path events() const { return root_ / "events.jsonl"; }
  std::filesystem::path traffic() const { return root_ / "traffic.json"; }
  std::filesystem::path faults_fired() const { return root_ / "faults.fired"; }
  /// How the coordinator of a run that trains is reached, and what it must know after its restart.
  std::filesystem::path coordinator() const { return root_ / "coordinator.json"; }
  std::filesystem::path coordinator_journal() const { return root_ / "coordinator.journal"; }
  std::filesystem::path run_id() const { return root_ / "run.id"; }
  std::filesystem::path lock() const { return root_ / "lock"; }
  std::filesystem::path logs() const { return root_ / "logs"; }
  std::filesystem::path log_out(int rank) const;    ///< logs/rank-0003.out
  std::filesystem::path log_err(int rank) const;    ///< logs/rank-0003.err
  std::filesystem::path rank_file(int rank) const;  ///< ranks/0003.json
  std::filesystem::path checkpoints() const { return root_ / "checkpoints"; }
  std::filesystem::path latest() const { return checkpoints() / "LATEST"; }
  std::filesystem::path checkpoint(std::int64_t step) const;  ///< checkpoints/step-00000100

  /// Creates the folder and its sub-folders. Throws IoError.
  void create() const;

 private:
  std::filesystem::path root_;
};

}  // namespace yoke
