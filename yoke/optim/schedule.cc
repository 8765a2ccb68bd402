#include "yoke/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "yoke/base/config_tree.h"
#include "yoke/base/error.h"

namespace yoke::optim {
namespace {

void check(const ScheduleOptions& options, std::int64_t total) {
  const auto& name = options.name;
  if (name != "constant" && name != "step" && name != "cosine" && name != "linear") {
    auto guess = did_you_mean(name, {"constant", "step", "cosine", "linear"});
    throw ConfigError(cat("no schedule is called \"", name, "\". ",
                          guess ? cat("Did you mean \"", *guess, "\"? ") : std::string(),
                          "There are constant, step, cosine and linear."));
  }
  if (options.warmup < 0 || options.warmup > total) {
    throw ConfigError(cat("schedule.warmup is ", options.warmup, " steps, and the run has ", total,
                          ". Make the warm-up shorter or the run longer (train.steps, "
                          "train.epochs)."));
  }
  if (name == "step" && options.step_size < 1) {
    throw ConfigError(cat("schedule.step_size must be 1 or more, and is ", options.step_size, "."));
  }
  if (name == "step" && !(options.gamma >= 0.0)) {
    throw ConfigError(cat("schedule.gamma must be 0 or more, and is ", options.gamma, "."));
  }
  if (!(options.final_ratio >= 0.0)) {
    throw ConfigError(
        cat("schedule.final_ratio must be 0 or more, and is ", options.final_ratio, "."));
  }
}

}  // namespace

double learning_rate(const ScheduleOptions& options, double peak, std::int64_t step,
                     std::int64_t total) {
  check(options, total);
  YOKE_ENSURE(step >= 0, "step ", step, "; steps count from 0.");
  step = std::min(step, std::max<std::int64_t>(total - 1, 0));
  if (step < options.warmup) {
    return peak * (static_cast<double>(step + 1) / static_cast<double>(options.warmup));
  }
  if (options.name == "constant") return peak;
  if (options.name == "step") {
    return peak * std::pow(options.gamma,
                           static_cast<double>((step - options.warmup) / options.step_size));
  }
  std::int64_t at_peak = std::max<std::int64_t>(options.warmup - 1, 0);
  if (step == at_peak) return peak;
  double part = static_cast<double>(step - at_peak) / static_cast<double>(total - 1 - at_peak);
  if (options.name == "linear") return peak * (1.0 + (options.final_ratio - 1.0) * part);
  double wave = (1.0 + std::cos(std::numbers::pi * part)) / 2.0;
  return peak * (options.final_ratio + (1.0 - options.final_ratio) * wave);
}

bool depends_on_length(const ScheduleOptions& options) {
  return options.name != "constant" && options.name != "step";
}

}  // namespace yoke::optim
