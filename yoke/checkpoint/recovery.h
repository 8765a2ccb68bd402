#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "yoke/base/run_folder.h"

namespace yoke::checkpoint {

/// A checkpoint that does not verify.
struct Damage {
  std::int64_t step = 0;
  std::string why;                  ///< names the file
  std::filesystem::path set_aside;  ///< where its folder lies now; empty if it is where it was
};

/// Newest first.
struct Search {
  std::int64_t step = -1;  ///< of the newest intact one; -1: the folder has none at all
  std::vector<Damage> damaged;
};

/// Verifies from the newest on until one is intact; changes nothing and logs nothing. Throws
/// CheckpointError if there are some, or have been some that were set aside, and none is intact.
Search search_intact(const RunFolder& folder);

/// The state to go on from: for whoever holds the run, on one rank, which tells the others.
/// Every damaged checkpoint that is newer is named in the log and its folder renamed to
/// `damaged-step-N`, which no reader takes and nothing removes; LATEST is mended if it names
/// another. Killed at any moment, the next call ends the same. Throws as search_intact does, and
/// then nothing was renamed.
Search recover_newest(const RunFolder& folder);

/// Folders that recover_newest has set aside, sorted.
std::vector<std::filesystem::path> set_aside_folders(const RunFolder& folder);

}  // namespace yoke::checkpoint
