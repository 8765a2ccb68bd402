#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/run_folder.h"
#include "yoke/checkpoint/contents.h"
#include "yoke/checkpoint/reader.h"
#include "yoke/checkpoint/retention.h"

namespace yoke::checkpoint {

struct Listed {
  std::int64_t step = 0;
  std::optional<Contents> contents;  ///< of one whose manifest can be trusted
  std::string damage;                ///< what is wrong with it; empty: nothing was found
  std::vector<std::string> kept;     ///< why: reasons_to_keep; empty: the next save removes it
};

/// The checkpoints of a run by step, each looked at as `verify` says: kAll reads every byte, else
/// the manifests and the sizes of the files. Changes nothing. Throws IoError.
std::vector<Listed> list(const RunFolder& folder, const Retention& retention, Verify verify);

}  // namespace yoke::checkpoint
