#include <algorithm>
#include <filesystem>
#include <map>
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

RunConfig config_of(const ConfigTree& tree) {
  std::map<std::string, std::string> values;
  for (const auto& entry : tree.entries()) values[entry.key] = entry.value;
  RunConfig config;
  ConfigTree known;
  bind(known, config);
  for (const auto& entry : known.entries()) {
    const auto value = values.find(entry.key);
    if (value != values.end()) known.set(cat(entry.key, "=", value->second), entry.key);
  }
  return config;
}

/// How far the last sitting that ended in order has come, and how far the run is to go.
struct Length {
  bool finished = false;
  std::int64_t done = 0;
  std::int64_t asked = 0;
};

Length length_of(const RunFolder& folder, const RunConfig& config) {
  if (!fs::exists(folder.report())) return {};
  const auto report = nlohmann::json::parse(read_file(folder.report()), nullptr, false);
  if (!report.is_object()) return {};
  const std::int64_t per_epoch = report.value("steps_per_epoch", std::int64_t{0});
  Length length{.finished = report.value("status", "") == "finished",
                .done = report.value("steps", std::int64_t{0})};
  length.asked = config.train.steps > 0 ? config.train.steps
                 : per_epoch > 0        ? config.train.epochs * per_epoch
                                        : length.done;
  if (length.asked < length.done) throw_gone_beyond(config, length.done, length.asked);
  return length;
}

/// The keys of the plan whose values differ from those with which the run began.
std::vector<std::string> changed_keys(const RunFolder& folder, const ConfigTree& tree,
                                      const RunConfig& config) {
  const std::string before = read_file(folder.config());
  try {
    return tree.differences(before, [&](std::string_view key) { return is_plan_key(key, config); });
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
  const auto checkpoints = checkpoint::steps_present(folder);
  if (checkpoints.empty() && fs::exists(folder.report())) {
    throw CheckpointError(cat(folder.root().string(),
                              " has a report but no checkpoint: ", folder.checkpoints().string(),
                              " was emptied or lost. Put it back, or start anew with --fresh (the "
                              "old folder is kept)."));
  }
  // Without a checkpoint there is nothing yet that another plan could spoil.
  if (fs::exists(folder.config()) && !checkpoints.empty()) {
    result = Prepared::kResume;
    const RunConfig config = config_of(tree);
    const auto changed = changed_keys(folder, tree, config);
    if (!changed.empty()) {
      std::string keys;
      for (const auto& key : changed) keys += cat(keys.empty() ? "" : ", ", key);
      throw ConfigError(cat("the run in ", folder.root().string(), " has another plan: ", keys,
                            ". Give them their old values to continue it, or choose another --run, "
                            "or start anew with "
                            "--fresh (the old folder is kept)."));
    }
    if (const auto newest = std::ranges::max(checkpoints);
        config.train.steps > 0 && newest > config.train.steps) {
      throw_gone_beyond(config, newest, config.train.steps);
    }
    const Length length = length_of(folder, config);
    if (length.finished && length.asked == length.done) return Prepared::kFinished;
    if (length.finished)
      log_info("the run had finished after ", length.done, " steps; it goes on to ", length.asked);
  }
  folder.create();
  // What a killed sitting has left half-written; nobody else writes here now.
  remove_abandoned_temporaries(folder.root());
  checkpoint::remove_leftovers(folder);
  write_file_atomically(folder.config(), tree.to_toml());
  // What it says was the end is none any more.
  fs::remove(folder.report());
  return result;
}

}  // namespace yoke::train
