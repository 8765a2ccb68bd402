#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "yoke/base/run_folder.h"

namespace yoke::checkpoint {

/// Which checkpoints of a run stay. One is kept for any of the three reasons.
struct Retention {
  std::int64_t keep_last = 2;   ///< the newest; at least 1
  std::int64_t keep_every = 0;  ///< those whose step is a multiple, for ever; 0: none
  std::int64_t keep_best = 0;   ///< those with the lowest loss of an evaluation; 0: none
};

/// What retention knows of a checkpoint.
struct Kept {
  std::int64_t step = 0;
  std::optional<double> evaluation_loss;
  bool intact = true;
};

/// Why each step stays: "last", "every", "best", and "damaged", since one that does not verify
/// takes nobody's place and is not removed either. A step that is not in the result is to go. Of
/// equal losses the earlier step is the better one.
std::map<std::int64_t, std::vector<std::string>> reasons_to_keep(std::span<const Kept> checkpoints,
                                                                 const Retention& retention);

/// Removes those of the steps up to `newest`, which was just written, that nothing keeps. Damaged
/// ones do not count: where keep_last is 2 or more, the newest but one is read in full and verified
/// before anything is removed, so that two verified ones are there at every moment; of the others
/// the manifest and the sizes of the files are checked. Killed at any moment it leaves whole
/// checkpoints and leftovers. Throws IoError.
void remove_old(const RunFolder& folder, std::int64_t newest, const Retention& retention);

}  // namespace yoke::checkpoint
