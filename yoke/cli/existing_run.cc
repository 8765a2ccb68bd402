#include "yoke/cli/existing_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "yoke/base/config_tree.h"
#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/observe/json_text.h"

namespace yoke::cli {
namespace {

std::filesystem::path origin_file(const RunFolder& folder) {
  return folder.root() / "origin.json";
}

/// Names of the runs beside `folder`.
std::vector<std::string> runs_beside(const RunFolder& folder) {
  std::vector<std::string> names;
  std::error_code error;
  auto parent = folder.root().lexically_normal().parent_path();
  for (std::filesystem::directory_iterator entry(parent.empty() ? "." : parent, error), end;
       !error && entry != end; entry.increment(error)) {
    if (std::filesystem::exists(RunFolder(entry->path()).config())) {
      names.push_back(entry->path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

void write_origin(const RunFolder& folder, const RunOrigin& origin) {
  nlohmann::json content = {
      {"file", origin.file}, {"folder", origin.folder}, {"command", origin.command}};
  write_file_atomically(origin_file(folder), json_text(content, 2) + "\n");
}

RunOrigin read_origin(const RunFolder& folder) {
  auto path = origin_file(folder);
  try {
    auto content = nlohmann::json::parse(read_file(path));
    return {content.at("file"), content.at("folder"), content.at("command")};
  } catch (const nlohmann::json::exception& error) {
    throw DataError(cat(path.string(), " is damaged (", error.what(),
                        "). Start the run's command again: it writes the file anew."));
  }
}

RunFolder existing_run(const std::string& name_or_path) {
  auto folder = RunFolder::named(name_or_path);
  std::error_code error;
  if (std::filesystem::exists(folder.config(), error)) return folder;
  auto names = runs_beside(folder);
  auto message = cat("there is no run ", folder.root().string(), '.');
  auto parent = folder.root().lexically_normal().parent_path().string();
  if (names.empty()) {
    message += " No run lies beside it; yoke train FILE makes one.";
  } else {
    auto near = did_you_mean(folder.root().filename().string(), names);
    if (near) message += cat(" Did you mean ", *near, "?");
    message += cat(" Runs in ", parent.empty() ? "." : parent, ":");
    for (const auto& name : names) message += ' ' + name;
  }
  throw UsageError(message);
}

}  // namespace yoke::cli
