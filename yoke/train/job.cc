#include "yoke/train/job.h"

#include "yoke/base/error.h"
#include "yoke/optim/schedule.h"

namespace yoke::train {

namespace {

data::GlobalSampler::Options sampler_options(const RunConfig& config, std::int64_t samples) {
  return {.samples = samples,
          .batch = config.train.batch,
          .micro_batch = config.micro_batch(),
          .seed = static_cast<std::uint64_t>(config.train.seed),
          .drop_last = config.drop_last};
}

std::int64_t total_steps_of(const RunConfig& config, const data::GlobalSampler& sampler) {
  return config.train.steps > 0 ? config.train.steps
                                : config.train.epochs * sampler.steps_per_epoch();
}

}  // namespace

Job::Job(const RunConfig& config, const std::string& config_folder, const model::Registry& registry)
    : data(data::load(config.data, config_folder)),
      sampler(sampler_options(config, data.train->size())),
      model(registry.make(config.model, data.train->shape(),
                          static_cast<std::uint64_t>(config.train.seed))),
      total_steps(total_steps_of(config, sampler)),
      identity(cat(data.train->identity(), data.test ? "+" + data.test->identity() : "")) {
  check(config);
  optim::learning_rate(config.schedule, config.optimizer.lr, 0, total_steps);
}

data::Batch micro_batch(const Job& job, std::int64_t step, std::int64_t index) {
  return job.data.train->get(job.sampler.indices(step, index));
}

model::StepContext context_of(const RunConfig& config, std::int64_t step,
                              std::int64_t micro_batch) {
  const RandomKey key = RandomKey(static_cast<std::uint64_t>(config.train.seed)).with("train");
  return {
      .key =
          key.with(static_cast<std::uint64_t>(step)).with(static_cast<std::uint64_t>(micro_batch)),
      .training = true};
}

std::string write_sample(const Job& job, std::int64_t characters, const RandomKey& key) {
  const data::Dataset& text = job.data.test ? *job.data.test : *job.data.train;
  const data::Batch first = text.get(std::vector<std::int64_t>{0});
  const auto tokens = first.input.contiguous();
  const std::span<const std::int64_t> all(tokens.const_data_ptr<std::int64_t>(),
                                          static_cast<std::size_t>(tokens.numel()));
  return model::sample_text(*job.model, text,
                            text.decode(all.first(std::min<std::size_t>(all.size(), 32))),
                            characters, key);
}

std::string plan_text(const RunConfig& config, const Job& job) {
  RunConfig copy = config;
  ConfigTree tree;
  bind(tree, copy);
  std::string text = cat("data ", job.identity, '\n');
  for (const auto& entry : tree.entries()) {
    if (is_plan_key(entry.key, config)) text += cat(entry.key, " = ", entry.value, '\n');
  }
  return text;
}

}  // namespace yoke::train
