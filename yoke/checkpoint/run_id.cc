#include "yoke/checkpoint/run_id.h"

#include <algorithm>
#include <string_view>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"
#include "yoke/base/log.h"
#include "yoke/checkpoint/input_file.h"
#include "yoke/checkpoint/manifest.h"
#include "yoke/checkpoint/reader.h"

namespace yoke::checkpoint {

namespace {

constexpr std::size_t kDigits = 32;

bool is_id(std::string_view text) {
  return text.size() == kDigits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

/// The id that the checkpoints name; empty if none does.
std::string id_of_checkpoints(const RunFolder& folder) {
  std::string found;
  for (const std::int64_t step : steps_present(folder)) {
    std::string id;
    try {
      const InputFile manifest(folder.checkpoint(step) / kManifestName);
      id = unseal(manifest.all(), manifest.path().string()).value("run_id", "");
    } catch (const CheckpointError&) {
      continue;  // Damaged ones are for those who look for a state.
    }
    if (!is_id(id) || id == found) continue;
    if (!found.empty()) {
      throw CheckpointError(cat(folder.checkpoints().string(), " has checkpoints of two runs, ",
                                found, " and ", id, ", and ", folder.run_id().string(),
                                " is lost. Write into that file which of them is this run."));
    }
    found = id;
  }
  return found;
}

}  // namespace

std::optional<std::string> run_id_of(const RunFolder& folder) {
  std::error_code error;
  if (!std::filesystem::exists(folder.run_id(), error)) return std::nullopt;
  std::string text = read_file(folder.run_id());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (!is_id(text)) return std::nullopt;
  return text;
}

std::string establish_run_id(const RunFolder& folder) {
  if (const auto id = run_id_of(folder)) return *id;
  std::string id = id_of_checkpoints(folder);
  if (!id.empty()) {
    log_warning(folder.run_id().string(), " was lost or damaged; it is ", id,
                " again, as the checkpoints say.");
  } else {
    id = random_token(kDigits);
  }
  write_file_atomically(folder.run_id(), id + "\n");
  return id;
}

}  // namespace yoke::checkpoint
