#pragma once

#include <memory>
#include <string>
#include <vector>

#include "yoke/elastic/placement/policy.h"

namespace yoke::elastic {

/// Placement that is decided while the step runs: no PlacementPolicy, but leaf_draws.h.
inline constexpr const char* kDynamicPlacement = "dynamic";

/// "even", and the names of the policies; kDynamicPlacement last.
std::vector<std::string> placement_names();

/// `seed`: of the policies that draw lots. Throws ConfigError for a name that is none, or
/// kDynamicPlacement.
std::unique_ptr<PlacementPolicy> make_policy(const std::string& name, std::uint64_t seed);

/// "5, 1, 1": numbers of at least 0, one of them above, by rank. Throws ConfigError that names what
/// is wrong. Empty text: no weights.
std::vector<double> weights_from(const std::string& text);

}  // namespace yoke::elastic
