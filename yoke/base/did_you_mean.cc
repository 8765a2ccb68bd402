#include "yoke/base/did_you_mean.h"

#include <algorithm>

namespace yoke {
namespace {

constexpr std::size_t kLongest = 128;  // Nobody mistypes one name of this length for another.

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

/// Edit distance with swaps of neighbours (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before_last, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                           lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::optional<std::string> did_you_mean(std::string_view word,
                                        const std::vector<std::string>& candidates) {
  std::optional<std::string> nearest;
  std::size_t least = kLongest;
  if (word.empty() || word.size() > kLongest) return nearest;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongest) continue;
    const std::size_t length = std::max(word.size(), candidate.size());
    const std::size_t allowed = std::clamp<std::size_t>(length / 3, 1, 4);
    const std::size_t found = distance(word, candidate);
    if (found <= allowed && found < least && found < length) {
      least = found;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace yoke
