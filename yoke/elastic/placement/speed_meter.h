#pragma once

#include <cstdint>
#include <vector>

namespace yoke::elastic {

/// How fast each worker has been: leaves a second over the steps that it finished, older ones
/// counting less and less. Leaves and seconds are averaged apart, and then divided, so that a step
/// with few leaves counts little, and a worker of constant speed has exactly that speed from its
/// first step on. Not thread-safe.
class SpeedMeter {
 public:
  /// After `half_life` further steps a step counts half. Throws ConfigError unless it is above 0.
  explicit SpeedMeter(double half_life = 5);

  /// What a worker did in a step, and the seconds that it computed (not those that it waited).
  /// Steps without leaves, or without a measurable time, say nothing and are left out.
  void note(int worker, std::int64_t leaves, double seconds);
  /// A worker that is gone, or was replaced by another of the same number, starts anew.
  void forget(int worker);

  /// Of workers 0 .. workers-1. One that has not finished a step yet counts as the mean of those
  /// that have; 1 for all where none has.
  std::vector<double> speeds(int workers) const;

 private:
  struct Average {
    double leaves = 0, seconds = 0;
  };
  double keep_;  ///< what is left of a step's weight after the next
  std::vector<Average> averages_;
};

}  // namespace yoke::elastic
