#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/fault.h"
#include "yoke/base/run_folder.h"
#include "yoke/checkpoint/contents.h"
#include "yoke/checkpoint/retention.h"

namespace yoke::checkpoint {

/// The attempt was begun by a generation that others have replaced since. Nothing was committed.
class Fenced : public CheckpointError {
 public:
  using CheckpointError::CheckpointError;
};

struct WriteOptions {
  std::uint64_t generation = 0;
  int world_size = 1;
  std::int64_t keep_last = 2;   ///< see Retention
  std::int64_t keep_every = 0;  ///< see Retention
  std::int64_t keep_best = 0;   ///< see Retention
  /// Of the very state that is written, where it was evaluated.
  std::optional<double> evaluation_loss = std::nullopt;
  /// Asked with the attempt's generation just before the checkpoint takes its place, and again
  /// before LATEST does; false ends the attempt with Fenced. Empty: it may.
  std::function<bool(std::uint64_t)> may_commit = nullptr;

  Retention retention() const { return {keep_last, keep_every, keep_best}; }
};

/// Some elements of a logical tensor, from element `first` on.
struct Slice {
  std::string name;  ///< with its prefix
  DType dtype = DType::kFloat32;
  std::uint64_t first = 0;
  std::span<const std::byte> bytes;
};

/// What one rank has written, for the one that commits.
struct Shard {
  std::string file;
  FileEntry entry;
  std::map<std::string, std::vector<Piece>> pieces;  ///< by tensor

  std::string to_text() const;  ///< JSON on one line
  /// Throws CheckpointError.
  static Shard from_text(const std::string& text);
};

/// Dtype and shape of the logical tensors, whoever holds which part of them.
using TensorIndex = std::map<std::string, std::pair<DType, std::vector<std::int64_t>>>;

/// One checkpoint in the making, by one rank or by many that share the folder. One rank begins;
/// then each writes the slices that it holds; then, having collected what all of them wrote, one
/// commits. Until the rename inside commit no reader finds anything. If any of them fails, one
/// abandons it and the attempt is over: a file whose write or fsync failed is never tried again.
///
/// All throw IoError.
class Attempt {
 public:
  Attempt(RunFolder folder, std::int64_t step, std::uint64_t generation);

  /// Makes the temporary folder anew, `step-N.gG.tmp`. Before the others write.
  void begin() const;
  /// Writes `shard-R.bin` and syncs it. A rank without slices need not.
  Shard write_shard(int rank, std::span<const Slice> slices) const;
  /// Throws CheckpointError too if the shards are not each element of each tensor once, and Fenced;
  /// nothing is committed then. `extra` is kept in the manifest under "run". Fault points
  /// checkpoint.3 to checkpoint.7.
  void commit(const TensorIndex& tensors, std::span<const Shard> shards,
              const nlohmann::json& extra, const WriteOptions& options, FaultPlan& faults) const;
  /// Removes what this attempt wrote, as far as it can, and nothing of others': a newer generation
  /// may be writing already.
  void abandon() const;

  const std::filesystem::path& temporary() const { return temporary_; }

 private:
  void write_manifest(const TensorIndex& tensors, std::span<const Shard> shards,
                      const nlohmann::json& extra, const WriteOptions& options) const;
  void require_current(const WriteOptions& options) const;

  RunFolder folder_;
  std::int64_t step_;
  std::uint64_t generation_;
  std::filesystem::path temporary_;
};

}  // namespace yoke::checkpoint
