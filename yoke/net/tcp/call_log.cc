#include "yoke/net/tcp/call_log.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "yoke/base/text.h"

namespace yoke::net {

std::string Disagreement::text() const {
  return cat("rank ", rank, " called ", describe(called), " where rank ", other, " called ",
             describe(others_call), ". All ranks make the same calls in the same order.");
}

void CallLog::note(const CallTag& tag) {
  if (!is_collective(tag)) {
    return;
  }
  calls_[tag.sequence % calls_.size()] = tag;
  newest_ = tag;
}

const CallTag* CallLog::other_than(const CallTag& theirs) const {
  const auto& mine = calls_[theirs.sequence % calls_.size()];
  const bool differs =
      is_collective(theirs) && mine && mine->sequence == theirs.sequence && !(*mine == theirs);
  return differs ? &*mine : nullptr;
}

std::optional<Disagreement> CallLog::disagreement(
    int rank, std::span<const std::optional<CallTag>> answers) const {
  std::optional<Disagreement> found;
  std::vector<std::pair<int, CallTag>> same_number;
  if (newest_) {
    same_number.emplace_back(rank, *newest_);
  }
  for (int peer = 0; peer < static_cast<int>(answers.size()); ++peer) {
    const auto& theirs = answers[static_cast<std::size_t>(peer)];
    if (peer == rank || !theirs) {
      continue;
    }
    if (const CallTag* mine = other_than(*theirs); mine && !found) {
      found = {peer, *theirs, rank, *mine};
    }
    if (newest_ && is_collective(*theirs) && theirs->sequence == newest_->sequence) {
      same_number.emplace_back(peer, *theirs);
    }
  }
  if (!found || same_number.size() < 3) {
    return found;
  }
  const auto differs_from_all = [&](const auto& call) {
    return std::ranges::count(same_number, call.second, &std::pair<int, CallTag>::second) == 1;
  };
  if (std::ranges::count_if(same_number, differs_from_all) == 1) {
    const auto odd = std::ranges::find_if(same_number, differs_from_all);
    const auto& other = same_number[odd == same_number.begin() ? 1 : 0];
    found = {odd->first, odd->second, other.first, other.second};
  }
  return found;
}

}  // namespace yoke::net
