#include "yoke/checkpoint/listing.h"

#include "yoke/base/error.h"

namespace yoke::checkpoint {

std::vector<Listed> list(const RunFolder& folder, const Retention& retention, Verify verify) {
  std::vector<Listed> result;
  std::vector<Kept> known;
  for (const std::int64_t step : steps_present(folder)) {
    Listed one{.step = step, .contents = std::nullopt, .damage = "", .kept = {}};
    try {
      one.contents = Reader(folder, step, verify).contents();
      known.push_back({step, one.contents->evaluation_loss, true});
    } catch (const CheckpointError& error) {
      one.damage = error.what();
      known.push_back({step, std::nullopt, false});
    }
    result.push_back(std::move(one));
  }
  const auto reasons = reasons_to_keep(known, retention);
  for (auto& one : result) {
    if (const auto found = reasons.find(one.step); found != reasons.end()) one.kept = found->second;
  }
  return result;
}

}  // namespace yoke::checkpoint
