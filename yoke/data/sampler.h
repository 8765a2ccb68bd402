#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

namespace yoke::data {

/// Which samples belong to which micro-batch of which step: arithmetic on the step number (design,
/// "Small print").
///
/// N samples, global batch B, micro-batch m. An epoch has E = ceil(N/B) steps (floor with
/// drop_last); step k lies in epoch e = k div E as its i = k mod E; the permutation of an epoch is
/// keyed by (seed, e); the step takes positions iB to min((i+1)B, N); micro-batch v takes the next
/// m of them, and the last may be short. No state: any step can be asked for in any order.
/// Thread-safe.
class GlobalSampler {
 public:
  struct Options {
    std::int64_t samples = 0;
    std::int64_t batch = 0;
    std::int64_t micro_batch = 0;
    std::uint64_t seed = 0;
    bool drop_last = false;
    bool shuffle = true;  ///< false: evaluation, in the order of the data set
  };
  struct Positions {
    std::int64_t epoch = 0;
    std::int64_t first = 0;  ///< position in the permutation of the epoch
    std::int64_t count = 0;
  };

  /// Throws ConfigError: no samples, a batch that is not positive, drop_last that leaves nothing.
  explicit GlobalSampler(const Options& options);

  std::int64_t steps_per_epoch() const { return steps_per_epoch_; }
  /// Micro-batches of step k: V = ceil(samples of the step / m).
  std::int64_t micro_batches(std::int64_t step) const;
  /// The most that any step has.
  std::int64_t most_micro_batches() const;
  std::int64_t samples_of_step(std::int64_t step) const;
  Positions positions(std::int64_t step, std::int64_t micro_batch) const;
  /// The data set's indices at these positions.
  std::vector<std::int64_t> indices(std::int64_t step, std::int64_t micro_batch) const;

 private:
  Options options_;
  std::int64_t steps_per_epoch_;
  mutable std::mutex mutex_;  ///< guards the permutation that is held
  mutable std::int64_t held_epoch_ = -1;
  mutable std::vector<std::int64_t> permutation_;
};

}  // namespace yoke::data
