#pragma once

#include <cstdint>
#include <string>

namespace yoke::optim {

struct ScheduleOptions {
  std::string name = "constant";  ///< "constant", "step", "cosine", "linear"
  std::int64_t warmup =
      0;  ///< steps; lr grows linearly from lr/warmup at step 0 to lr at step warmup-1
  std::int64_t step_size =
      1000;  ///< "step": multiply by gamma every so many steps, counted from the end of the warm-up
  double gamma = 0.1;
  double final_ratio = 0.0;  ///< "cosine", "linear": lr at the last step, as a part of the peak
};

/// The learning rate of step k (from 0) of a run of `total` steps. A pure function; throws
/// ConfigError for an unknown name, options that cannot be right or a warm-up longer than the run.
///
/// After the warm-up, with s = max(warmup - 1, 0) the step at the peak and t = (k - s) / (total - 1
/// - s):
///   step     peak * gamma ^ floor((k - warmup) / step_size)
///   linear   peak * (1 + (final_ratio - 1) * t)
///   cosine   peak * (final_ratio + (1 - final_ratio) * (1 + cos(pi * t)) / 2)
/// Steps beyond the end keep the rate of the last step; a run of one step has the peak.
double learning_rate(const ScheduleOptions& options, double peak, std::int64_t step,
                     std::int64_t total);

/// Whether the rate of a step depends on the length of the run: if not, a finished run can be made
/// longer and is then as if it had been that long from the start.
bool depends_on_length(const ScheduleOptions& options);

}  // namespace yoke::optim
