#include "yoke/elastic/placement/make_policy.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "yoke/base/error.h"
#include "yoke/elastic/placement/contiguous.h"
#include "yoke/elastic/placement/scattered.h"

namespace yoke::elastic {

std::vector<std::string> placement_names() {
  return {"even",   "weighted",         "random",       "least-loaded",
          "power-of-choices", "proportional", kDynamicPlacement};
}

std::unique_ptr<PlacementPolicy> make_policy(const std::string& name, std::uint64_t seed) {
  if (name == "even") return std::make_unique<RoundRobin>();
  if (name == "weighted") return std::make_unique<WeightedRoundRobin>();
  if (name == "random") return std::make_unique<Random>(seed);
  if (name == "least-loaded") return std::make_unique<LeastLoaded>();
  if (name == "power-of-choices") return std::make_unique<PowerOfChoices>(seed);
  if (name == "proportional") return std::make_unique<Proportional>();
  throw ConfigError(cat("\"", name, "\" is no placement that is known before the step."));
}

std::vector<double> weights_from(const std::string& text) {
  std::vector<double> weights;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    std::size_t first = begin, last = comma;
    while (first < last && text[first] == ' ') ++first;
    while (last > first && text[last - 1] == ' ') --last;
    double weight = -1;
    const auto [end, error] = std::from_chars(text.data() + first, text.data() + last, weight);
    if (error != std::errc() || end != text.data() + last || !std::isfinite(weight) || weight < 0) {
      throw ConfigError(cat("elastic.weights: \"", text.substr(begin, comma - begin),
                            "\" is no number of at least 0. Write one for each rank, with commas "
                            "between: \"5, 1, 1\"."));
    }
    weights.push_back(weight);
    begin = comma + 1;
  }
  if (!weights.empty() && std::ranges::max(weights) == 0)
    throw ConfigError("elastic.weights: all are 0, so nobody would compute anything.");
  return weights;
}

}  // namespace yoke::elastic
