#include "yoke/checkpoint/retention.h"

#include <algorithm>
#include <filesystem>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/log.h"
#include "yoke/checkpoint/reader.h"

namespace yoke::checkpoint {

namespace fs = std::filesystem;

std::map<std::int64_t, std::vector<std::string>> reasons_to_keep(std::span<const Kept> checkpoints,
                                                                 const Retention& retention) {
  std::map<std::int64_t, std::vector<std::string>> reasons;
  std::vector<Kept> intact;
  for (const auto& one : checkpoints) {
    if (one.intact)
      intact.push_back(one);
    else
      reasons[one.step].push_back("damaged");
  }
  const auto take = [&](std::int64_t most, const char* reason) {
    for (std::size_t i = 0; i < intact.size() && static_cast<std::int64_t>(i) < most; ++i)
      reasons[intact[i].step].push_back(reason);
  };
  std::ranges::sort(intact, std::greater(), &Kept::step);
  take(std::max<std::int64_t>(retention.keep_last, 1), "last");
  for (const auto& one : intact) {
    if (retention.keep_every > 0 && one.step > 0 && one.step % retention.keep_every == 0)
      reasons[one.step].push_back("every");
  }
  std::erase_if(intact, [](const Kept& one) { return !one.evaluation_loss; });
  std::ranges::sort(intact, std::less(),
                    [](const Kept& one) { return std::pair(*one.evaluation_loss, one.step); });
  take(retention.keep_best, "best");
  return reasons;
}

namespace {

constexpr std::size_t kVerified = 2;

Kept look_at(const RunFolder& folder, std::int64_t step, Verify verify) {
  try {
    const Reader reader(folder, step, verify);
    return {step, reader.contents().evaluation_loss, true};
  } catch (const CheckpointError& error) {
    log_warning(error.what(), " It is kept, and counts for none.");
    return {step, std::nullopt, false};
  }
}

}  // namespace

void remove_old(const RunFolder& folder, std::int64_t newest, const Retention& retention) {
  std::vector<std::int64_t> steps = steps_present(folder);
  std::erase_if(steps, [&](std::int64_t step) { return step > newest; });
  const auto least = static_cast<std::size_t>(std::max<std::int64_t>(retention.keep_last, 1));
  if (steps.size() <= least) return;  // Nothing can go.
  std::ranges::reverse(steps);
  std::vector<Kept> checkpoints;
  std::size_t verified = 0;
  for (const std::int64_t step : steps) {
    // What was written a moment ago and synced is known to be whole.
    const bool in_full = step != newest && verified < std::min(kVerified, least);
    checkpoints.push_back(look_at(folder, step, in_full ? Verify::kAll : Verify::kWhatIsRead));
    verified += checkpoints.back().intact ? 1 : 0;
  }
  const auto reasons = reasons_to_keep(checkpoints, retention);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (reasons.contains(*step)) continue;
    // A folder under removal must not look like a checkpoint.
    const fs::path dying = folder.checkpoint(*step).string() + ".tmp";
    rename_durably(folder.checkpoint(*step), dying);
    fs::remove_all(dying);
  }
}

}  // namespace yoke::checkpoint
