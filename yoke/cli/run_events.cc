#include "yoke/cli/run_events.h"

#include <nlohmann/json.hpp>

#include "yoke/base/clock.h"
#include "yoke/base/files.h"
#include "yoke/observe/jsonl.h"

namespace yoke::cli {

void note_failure(const RunFolder& folder, const std::string& kind, int rank) {
  auto source = newest_state(folder);
  JsonLines events(folder.events());
  events.append({{"time", utc_now()},
                 {"generation", 0},
                 {"cause", kind},
                 {"rank", rank < 0 ? nlohmann::json() : nlohmann::json(rank)},
                 {"recovery_source", source.empty() ? nlohmann::json() : nlohmann::json(source)},
                 {"detect_ms", nullptr},
                 {"resume_ms", nullptr}});
  events.flush_durably();
}

std::string newest_state(const RunFolder& folder) {
  std::error_code error;
  if (!std::filesystem::exists(folder.latest(), error)) return {};
  auto name = read_file(folder.latest());
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return (folder.checkpoints().filename() / name).string();
}

}  // namespace yoke::cli
