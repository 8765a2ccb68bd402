#include "yoke/checkpoint/recovery.h"

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/log.h"
#include "yoke/checkpoint/reader.h"
#include "yoke/checkpoint/run_id.h"

namespace yoke::checkpoint {

namespace fs = std::filesystem;

namespace {

constexpr const char* kDamaged = "damaged-";

[[noreturn]] void throw_none(const RunFolder& folder, const Search& search,
                             const std::vector<fs::path>& aside) {
  std::string reasons;
  for (const auto& damage : search.damaged) reasons += "\n  " + damage.why;
  const std::string where = folder.checkpoints().string();
  throw CheckpointError(
      search.damaged.empty()
          ? cat(where, " has no checkpoint left but ", aside.size(),
                " that was set aside as damaged (", aside.back().filename().string(),
                "). Put an intact one back, or start anew with --fresh (the old folder is kept).")
          : cat("none of the ", search.damaged.size(), " checkpoints in ", where,
                " is intact. Put an intact one back, or start anew with --fresh (the old folder is "
                "kept).",
                reasons));
}

/// A name that is free: damaged-step-00000100, damaged-step-00000100.2 ...
fs::path place_aside(const fs::path& checkpoint) {
  const fs::path first = checkpoint.parent_path() / (kDamaged + checkpoint.filename().string());
  fs::path place = first;
  for (int n = 2; fs::exists(fs::symlink_status(place)); ++n) place = cat(first.string(), ".", n);
  return place;
}

void mend_latest(const RunFolder& folder, std::int64_t step) {
  const std::string name = folder.checkpoint(step).filename().string() + "\n";
  std::string found = "nothing";
  if (fs::exists(folder.latest())) found = read_file(folder.latest());
  if (found == name) return;
  write_file_atomically(folder.latest(), name);
  while (!found.empty() && found.back() == '\n') found.pop_back();
  log_warning(folder.latest().string(), " named ", found.substr(0, 100),
              "; the newest intact checkpoint is that of step ", step, ", which it names now.");
}

}  // namespace

std::vector<fs::path> set_aside_folders(const RunFolder& folder) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& item : fs::directory_iterator(folder.checkpoints(), ignored)) {
    if (item.path().filename().string().starts_with(kDamaged)) found.push_back(item.path());
  }
  std::ranges::sort(found);
  return found;
}

Search search_intact(const RunFolder& folder) {
  Search search;
  const auto steps = steps_present(folder);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    try {
      search.step = Reader(folder, *step).step();
      return search;
    } catch (const CheckpointError& error) {
      search.damaged.push_back({*step, error.what(), {}});
    }
  }
  const auto aside = set_aside_folders(folder);
  if (!search.damaged.empty() || !aside.empty()) throw_none(folder, search, aside);
  return search;
}

Search recover_newest(const RunFolder& folder) {
  if (!steps_present(folder).empty()) establish_run_id(folder);
  Search search = search_intact(folder);
  for (auto& damage : search.damaged) {
    const fs::path checkpoint = folder.checkpoint(damage.step);
    damage.set_aside = place_aside(checkpoint);
    rename_durably(checkpoint, damage.set_aside);
    log_warning(damage.why, " Its folder is ", damage.set_aside.string(),
                " now; the run goes on from step ", search.step, ".");
  }
  if (search.step >= 0) mend_latest(folder, search.step);
  return search;
}

}  // namespace yoke::checkpoint
