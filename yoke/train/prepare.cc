#include <filesystem>
#include <nlohmann/json.hpp>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/log.h"
#include "yoke/checkpoint/reader.h"
#include "yoke/checkpoint/writer.h"
#include "yoke/train/run.h"

namespace yoke::train {

namespace fs = std::filesystem;

namespace {

void set_aside(const RunFolder& folder) {
  for (int n = 1;; ++n) {
    const fs::path old = cat(folder.root().string(), ".old-", n);
    if (fs::exists(old)) continue;
    rename_durably(folder.root(), old);
    log_info("the old run lies in ", old.string(), " now");
    return;
  }
}

bool has_finished(const RunFolder& folder) {
  if (!fs::exists(folder.report())) return false;
  const auto report = nlohmann::json::parse(read_file(folder.report()), nullptr, false);
  return report.is_object() && report.value("status", "") == "finished";
}

/// The keys of the plan whose values differ from those with which the run began.
std::vector<std::string> changed_keys(const RunFolder& folder, const ConfigTree& tree) {
  const std::string before = read_file(folder.config());
  try {
    return tree.differences(before, is_plan_key);
  } catch (const ConfigError& error) {
    throw ConfigError(cat(folder.config().string(), " is damaged, or of another version of yoke (",
                          error.what(),
                          "). Restore it, or start anew with --fresh (the old folder "
                          "is kept)."));
  }
}

}  // namespace

Prepared prepare_folder(const RunFolder& folder, const ConfigTree& tree, bool fresh) {
  if (fresh && fs::exists(folder.root())) set_aside(folder);
  Prepared result = Prepared::kNew;
  if (fs::exists(folder.config())) {
    const auto changed = changed_keys(folder, tree);
    if (!changed.empty()) {
      std::string keys;
      for (const auto& key : changed) keys += cat(keys.empty() ? "" : ", ", key);
      throw ConfigError(cat("the run in ", folder.root().string(), " has another plan: ", keys,
                            ". Give them their old values to continue it, or choose another --run, "
                            "or start anew with "
                            "--fresh (the old folder is kept)."));
    }
    if (has_finished(folder)) return Prepared::kFinished;
    result = checkpoint::steps_present(folder).empty() ? Prepared::kNew : Prepared::kResume;
  }
  folder.create();
  // What a killed sitting has left half-written; nobody else writes here now.
  remove_abandoned_temporaries(folder.root());
  checkpoint::remove_leftovers(folder);
  write_file_atomically(folder.config(), tree.to_toml());
  return result;
}

}  // namespace yoke::train
