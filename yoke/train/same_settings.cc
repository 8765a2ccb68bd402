#include "yoke/train/same_settings.h"

#include <map>
#include <sstream>

#include "yoke/base/error.h"

namespace yoke::train {

namespace {

bool may_differ(std::string_view key) {
  return key == "data.path" || key == "data.labels" || key == "data.test_path" ||
         key == "data.test_labels";
}

std::string settings_of(const RunConfig& config, const RunOptions& options) {
  RunConfig copy = config;
  ConfigTree tree;
  bind(tree, copy);
  std::string text;
  for (const auto& entry : tree.entries()) {
    if (!may_differ(entry.key)) text += cat(entry.key, " = ", entry.value, '\n');
  }
  text += cat("--run = ", options.folder.root().string(), '\n');
  text += cat("--stop-after = ", options.stop_after ? cat(*options.stop_after) : "none", '\n');
  return text;
}

std::map<std::string, std::string> lines_by_key(const std::string& text) {
  std::map<std::string, std::string> values;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find(" = ");
    values[line.substr(0, equals)] = equals == std::string::npos ? "" : line.substr(equals + 3);
  }
  return values;
}

}  // namespace

void require_same_settings(const World& world, const RunConfig& config, const RunOptions& options) {
  if (world.size() == 1) return;
  const std::string mine = settings_of(config, options);
  const std::string key = cat("settings/", world.generation());
  if (world.rank() == 0) {
    world.store().set(key, mine);
    return;
  }
  const auto timeout = std::chrono::duration_cast<Clock::duration>(Seconds(config.comm.timeout));
  const std::string theirs = world.store().get(key, Deadline::after(timeout));
  if (mine == theirs) return;
  auto first = lines_by_key(theirs);
  std::string found;
  for (const auto& [name, value] : lines_by_key(mine)) {
    if (first[name] == value) continue;
    found += cat(found.empty() ? "" : "; ", name, " is ", value, ", and on rank 0 ",
                 first[name].empty() ? "not known" : first[name]);
  }
  throw ConfigError(cat("rank ", world.rank(), " is configured differently from rank 0: ",
                        found.empty() ? "rank 0 has keys that this build lacks" : found,
                        ". Give all ranks the same file, flags and YOKE_ variables."));
}

}  // namespace yoke::train
