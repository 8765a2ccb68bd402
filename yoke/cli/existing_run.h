#pragma once

#include <string>

#include "yoke/base/run_folder.h"

namespace yoke::cli {

/// Where the file of a run lay, for data paths that are relative to it, and the command that was
/// typed. Kept as RUN/origin.json.
struct RunOrigin {
  std::string file;
  std::string folder;
  std::string command;
};

void write_origin(const RunFolder& folder, const RunOrigin& origin);
/// Throws IoError or DataError.
RunOrigin read_origin(const RunFolder& folder);

/// The run of that name under runs/, or at that path. Throws UsageError that lists the runs there
/// are.
RunFolder existing_run(const std::string& name_or_path);

}  // namespace yoke::cli
