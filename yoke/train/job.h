#pragma once

#include <memory>
#include <string>

#include "yoke/data/dataset.h"
#include "yoke/data/sampler.h"
#include "yoke/model/registry.h"
#include "yoke/train/run_config.h"

namespace yoke::train {

/// What a configuration names, built: the same on every rank, and by `yoke eval` and `yoke replay`.
struct Job {
  Job(const RunConfig& config, const std::string& config_folder, const model::Registry& registry);

  data::TrainAndTest data;
  data::GlobalSampler sampler;
  std::shared_ptr<model::LayerList> model;
  std::int64_t total_steps = 0;
  std::string identity;  ///< of the data, train and test
};

/// One micro-batch of training data.
data::Batch micro_batch(const Job& job, std::int64_t step, std::int64_t index);

/// The randomness of one micro-batch of training.
model::StepContext context_of(const RunConfig& config, std::int64_t step, std::int64_t micro_batch);

/// Text that the model of a text job writes, from the beginning of the test data on.
std::string write_sample(const Job& job, std::int64_t characters, const RandomKey& key);

/// All that fixes the bits of a run, as text: the plan keys and the identity of the data.
std::string plan_text(const RunConfig& config, const Job& job);

}  // namespace yoke::train
