#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "yoke/base/run_folder.h"
#include "yoke/checkpoint/contents.h"
#include "yoke/checkpoint/input_file.h"
#include "yoke/checkpoint/snapshot.h"

namespace yoke::checkpoint {

/// Steps whose folders exist, ascending; complete or not is for Reader to find out. Throws IoError
/// if the folder is there and cannot be listed.
std::vector<std::int64_t> steps_present(const RunFolder& folder);

/// Which files of a checkpoint are compared with their checksums.
enum class Verify {
  kAll,         ///< all, at once
  kWhatIsRead,  ///< each when something of it is read for the first time
};

/// One checkpoint, verified. Trusts only a manifest whose hash checks, and only files with the
/// sizes and checksums that it names. Files are read by pieces of 1 MiB and tensors from where they
/// lie, so that a rank which needs a part of a state holds no more than that part. Not thread-safe.
class Reader {
 public:
  /// Throws CheckpointError that names the file and what is wrong with it.
  Reader(const RunFolder& folder, std::int64_t step, Verify verify = Verify::kAll);

  std::int64_t step() const { return contents_.step; }
  /// What write() was given as `extra`.
  const nlohmann::json& run() const { return contents_.run; }
  const Contents& contents() const { return contents_; }
  /// Reads a tensor, named with its prefix. Throws CheckpointError if it is missing or has another
  /// size.
  void read(const std::string& name, std::span<std::byte> out) const;
  /// Reads elements of it, from `first` on, as many as fill `out`.
  void read_range(const std::string& name, std::uint64_t first, std::span<std::byte> out) const;
  /// All of it: views of this object's memory, which it takes at the first call.
  const Snapshot& snapshot() const;

 private:
  const TensorEntry& entry(const std::string& name) const;
  const InputFile& file(const std::string& name) const;
  void verify(const std::string& name) const;
  std::string lacks(const std::string& name) const;

  Contents contents_;
  std::map<std::string, InputFile> files_;
  mutable std::map<std::string, bool> verified_;
  mutable std::map<std::string, std::vector<std::byte>> memory_;
  mutable Snapshot snapshot_;
};

/// The newest checkpoint that verifies; a damaged one is named in the log, and the one before is
/// tried. None at all: -1. Checkpoints there, but all damaged: CheckpointError, since a run never
/// starts from scratch silently. Changes nothing: for those who look at a run, which another
/// process may be training. Whoever holds it calls recover_newest (recovery.h).
std::int64_t newest_intact(const RunFolder& folder);

}  // namespace yoke::checkpoint
