#include "yoke/elastic/placement/speed_meter.h"

#include <cmath>

#include "yoke/base/error.h"

namespace yoke::elastic {

SpeedMeter::SpeedMeter(double half_life) : keep_(std::exp2(-1 / half_life)) {
  if (!(half_life > 0)) {
    throw ConfigError(cat("a half-life of ", half_life, " steps; it must be above 0."));
  }
}

void SpeedMeter::note(int worker, std::int64_t leaves, double seconds) {
  YOKE_ENSURE(worker >= 0, "worker ", worker);
  if (leaves <= 0 || !(seconds > 0) || !std::isfinite(seconds)) return;
  const auto index = static_cast<std::size_t>(worker);
  if (index >= averages_.size()) averages_.resize(index + 1);
  Average& average = averages_[index];
  average.leaves = keep_ * average.leaves + static_cast<double>(leaves);
  average.seconds = keep_ * average.seconds + seconds;
}

void SpeedMeter::forget(int worker) {
  const auto index = static_cast<std::size_t>(worker);
  if (worker >= 0 && index < averages_.size()) averages_[index] = {};
}

std::vector<double> SpeedMeter::speeds(int workers) const {
  std::vector<double> speeds(static_cast<std::size_t>(workers));
  double sum = 0;
  int known = 0;
  for (std::size_t i = 0; i < speeds.size() && i < averages_.size(); ++i) {
    if (averages_[i].seconds <= 0) continue;
    speeds[i] = averages_[i].leaves / averages_[i].seconds;
    sum += speeds[i];
    ++known;
  }
  for (double& speed : speeds) {
    if (speed == 0) speed = known == 0 ? 1 : sum / known;
  }
  return speeds;
}

}  // namespace yoke::elastic
