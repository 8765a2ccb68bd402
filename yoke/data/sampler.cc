#include "yoke/data/sampler.h"

#include <algorithm>
#include <numeric>

#include "yoke/base/error.h"
#include "yoke/base/random.h"

namespace yoke::data {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0);
}

}  // namespace

GlobalSampler::GlobalSampler(const Options& options) : options_(options), steps_per_epoch_(0) {
  if (options.samples < 1) throw ConfigError("the data set has no samples to draw from.");
  if (options.batch < 1)
    throw ConfigError(cat("train.batch must be 1 or more, and is ", options.batch, "."));
  if (options.micro_batch < 1) {
    throw ConfigError(
        cat("train.micro_batch must be 1 or more, and is ", options.micro_batch, "."));
  }
  steps_per_epoch_ = options.drop_last ? options.samples / options.batch
                                       : ceil_div(options.samples, options.batch);
  if (steps_per_epoch_ == 0) {
    throw ConfigError(cat("data.drop_last leaves nothing: the data set has ", options.samples,
                          " samples, fewer than one train.batch of ", options.batch,
                          ". Use a smaller batch, or data.drop_last = false."));
  }
}

std::int64_t GlobalSampler::samples_of_step(std::int64_t step) const {
  YOKE_ENSURE(step >= 0, "step ", step, "; steps count from 0.");
  std::int64_t first = step % steps_per_epoch_ * options_.batch;
  return std::min(options_.batch, options_.samples - first);
}

std::int64_t GlobalSampler::micro_batches(std::int64_t step) const {
  return ceil_div(samples_of_step(step), options_.micro_batch);
}

std::int64_t GlobalSampler::most_micro_batches() const {
  return micro_batches(0);
}

GlobalSampler::Positions GlobalSampler::positions(std::int64_t step,
                                                  std::int64_t micro_batch) const {
  std::int64_t samples = samples_of_step(step);
  YOKE_ENSURE(micro_batch >= 0 && micro_batch < micro_batches(step), "micro-batch ", micro_batch,
              " of step ", step, ", which has ", micro_batches(step), ".");
  std::int64_t offset = micro_batch * options_.micro_batch;
  return {.epoch = step / steps_per_epoch_,
          .first = step % steps_per_epoch_ * options_.batch + offset,
          .count = std::min(options_.micro_batch, samples - offset)};
}

std::vector<std::int64_t> GlobalSampler::indices(std::int64_t step,
                                                 std::int64_t micro_batch) const {
  Positions at = positions(step, micro_batch);
  std::vector<std::int64_t> result(static_cast<std::size_t>(at.count));
  if (!options_.shuffle) {
    std::iota(result.begin(), result.end(), at.first);
    return result;
  }
  std::lock_guard lock(mutex_);
  if (held_epoch_ != at.epoch) {
    auto key =
        RandomKey(options_.seed).with("data.epoch").with(static_cast<std::uint64_t>(at.epoch));
    permutation_ = key.permutation(options_.samples);
    held_epoch_ = at.epoch;
  }
  std::copy_n(permutation_.begin() + at.first, at.count, result.begin());
  return result;
}

}  // namespace yoke::data
