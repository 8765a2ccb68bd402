#include "yoke/base/run_folder.h"

#include <cstdio>
#include <string_view>
#include <system_error>

#include "yoke/base/error.h"

namespace yoke {
namespace {

std::string padded(const char* format, long long number) {
  char text[64];
  std::snprintf(text, sizeof text, format, number);
  return text;
}

}  // namespace

RunFolder RunFolder::named(const std::string& name_or_path) {
  std::string_view bare = name_or_path;  // A shell completes a folder's name with a slash.
  while (bare.size() > 1 && (bare.ends_with('/') || bare.ends_with("/.")))
    bare.remove_suffix(bare.ends_with('/') ? 1 : 2);
  const std::string_view last = bare.substr(bare.rfind('/') + 1);  // npos + 1 is 0
  if (last.empty() || last == "." || last == "..") {
    throw ConfigError(cat("\"", name_or_path,
                          "\" cannot be the name of a run; give a name, or a path with a slash."));
  }
  if (name_or_path.find('/') != std::string::npos) return RunFolder(bare);
  return RunFolder(std::filesystem::path("runs") / bare);
}

std::filesystem::path RunFolder::log_out(int rank) const {
  return logs() / padded("rank-%04lld.out", rank);
}

std::filesystem::path RunFolder::log_err(int rank) const {
  return logs() / padded("rank-%04lld.err", rank);
}

std::filesystem::path RunFolder::rank_file(int rank) const {
  return root_ / "ranks" / padded("%04lld.json", rank);
}

std::filesystem::path RunFolder::checkpoint(std::int64_t step) const {
  return checkpoints() / padded("step-%08lld", step);
}

void RunFolder::create() const {
  for (const auto& folder : {root_, logs(), root_ / "ranks", checkpoints()}) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) {
      throw IoError(cat("cannot create the run folder ", folder.string(), ": ", error.message(),
                        ". Choose another place with --run."));
    }
  }
}

}  // namespace yoke
