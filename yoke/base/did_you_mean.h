#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

/// The candidate nearest to `word`, if it is near enough to be a typing error: at most a third of
/// its letters, and never more than four, are inserted, missing, replaced, or swapped with a
/// neighbour. Case does not count. The first of several equally near ones.
std::optional<std::string> did_you_mean(std::string_view word,
                                        const std::vector<std::string>& candidates);

}  // namespace yoke
