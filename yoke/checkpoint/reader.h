#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "yoke/base/run_folder.h"
#include "yoke/checkpoint/snapshot.h"

namespace yoke::checkpoint {

/// Steps whose folders exist, ascending; complete or not is for Reader to find out.
std::vector<std::int64_t> steps_present(const RunFolder& folder);

/// One checkpoint, verified. Trusts only a manifest whose hash checks, and only files with the
/// checksums that it names.
class Reader {
 public:
  /// Reads and verifies everything. Throws CheckpointError that names the file and what is wrong
  /// with it.
  Reader(const RunFolder& folder, std::int64_t step);

  std::int64_t step() const { return snapshot_.step; }
  /// What write() was given as `extra`.
  const nlohmann::json& run() const { return run_; }
  /// Views of this object's memory.
  const Snapshot& snapshot() const { return snapshot_; }
  /// Copies a tensor, named with its prefix. Throws CheckpointError if it is missing or has another
  /// size.
  void read(const std::string& name, std::span<std::byte> out) const;

 private:
  std::string where_;
  nlohmann::json run_;
  std::map<std::string, std::vector<std::byte>> memory_;
  Snapshot snapshot_;
};

/// The newest checkpoint that verifies; a damaged one is named in the log, and the one before is
/// tried. None at all: -1. Checkpoints there, but all damaged: CheckpointError, since a run never
/// starts from scratch silently.
std::int64_t newest_intact(const RunFolder& folder);

}  // namespace yoke::checkpoint
