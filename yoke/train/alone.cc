// What can be asked of a run by one process, later: evaluate, replay, hash.

#include <torch/torch.h>

#include "yoke/base/error.h"
#include "yoke/checkpoint/reader.h"
#include "yoke/optim/optimizer.h"
#include "yoke/tensor/bridge.h"
#include "yoke/tensor/fingerprint.h"
#include "yoke/tensor/worker_setup.h"
#include "yoke/train/evaluator.h"
#include "yoke/train/job.h"
#include "yoke/train/model_input.h"
#include "yoke/train/run.h"
#include "yoke/train/state.h"
#include "yoke/train/step.h"

namespace yoke::train {

namespace {

std::int64_t existing_step(const RunFolder& folder, std::optional<std::int64_t> step) {
  if (step) {
    std::string others;
    for (const std::int64_t other : checkpoint::steps_present(folder)) {
      if (other == *step) return *step;
      others += cat(others.empty() ? "" : ", ", other);
    }
    throw CheckpointError(cat(
        folder.root().string(), " has no checkpoint of step ", *step, ". ",
        others.empty() ? "There is none yet: train it first."
                       : cat("Steps with a checkpoint: ", others,
                             ". train.checkpoint_every and train.keep_last say which are kept.")));
  }
  const std::int64_t newest = checkpoint::newest_intact(folder);
  if (newest < 0)
    throw CheckpointError(cat(folder.root().string(), " has no checkpoint yet. Train it first."));
  return newest;
}

void load_model(torch::nn::Module& model, const checkpoint::Reader& reader) {
  torch::NoGradGuard no_grad;
  auto load = [&](const std::string& name, at::Tensor tensor) {
    at::Tensor copy = torch::empty_like(tensor, at::MemoryFormat::Contiguous);
    reader.read(name, tensor::mutable_bytes_of(copy));
    tensor.copy_(copy);
  };
  const sync::ModelTensors tensors(model);
  for (const auto* parameters : {&tensors.trainable, &tensors.frozen}) {
    for (const auto& [name, tensor] : *parameters) load("parameters/" + name, tensor);
  }
  for (const auto* buffers : {&tensors.averaged, &tensors.agreed}) {
    for (const auto& [name, tensor] : *buffers) load("buffers/" + name, tensor);
  }
}

/// The newest checkpoint at or before `step`; -1 if the initial weights are.
std::int64_t newest_before(const RunFolder& folder, std::int64_t step) {
  std::int64_t found = -1;
  for (const std::int64_t other : checkpoint::steps_present(folder))
    found = other <= step ? other : found;
  return found;
}

std::string fingerprint_warning(const RunConfig& config, const Job& job,
                                const checkpoint::Reader& reader) {
  tensor::Fingerprint then;
  for (const auto& [name, value] : reader.run().at("fingerprint").items())
    then.parts[name] = value.get<std::string>();
  const std::string found = tensor::differences(
      tensor::fingerprint(config.train.threads, plan_text(config, job)), then.text(), "in the run");
  return found.empty() ? "" : cat("this machine may not give the bits of the run: ", found);
}

}  // namespace

Evaluation evaluate(const RunConfig& config, const RunFolder& folder,
                    std::optional<std::int64_t> step, const std::string& config_folder,
                    const model::Registry& registry) {
  tensor::set_up_worker(config.train.threads);
  const Job job(config, config_folder, registry);
  if (!job.data.test)
    throw ConfigError("the run has no test data: set data.test_path or data.hold_out.");
  const checkpoint::Reader reader(folder, existing_step(folder, step));
  load_model(*job.model, reader);
  Evaluation result;
  result.step = reader.step();
  result.metrics = Evaluator(job.data.test, config.train.eval_batch).run(*job.model, nullptr);
  if (config.train.sample_characters > 0 && job.data.train->shape().tokens) {
    const RandomKey key = RandomKey(static_cast<std::uint64_t>(config.train.seed)).with("sample");
    result.sample = write_sample(job, config.train.sample_characters, key);
  }
  return result;
}

Replayed replay(const RunConfig& config, const RunFolder& folder, std::int64_t step,
                std::int64_t micro_batch, const std::string& config_folder,
                const model::Registry& registry) {
  tensor::set_up_worker(config.train.threads);
  const Job job(config, config_folder, registry);
  if (step < 0 || step >= job.total_steps) {
    throw ConfigError(cat("the run has steps 0 to ", job.total_steps - 1, ", not ", step, "."));
  }
  if (micro_batch < 0 || micro_batch >= job.sampler.micro_batches(step)) {
    throw ConfigError(cat("step ", step, " has micro-batches 0 to ",
                          job.sampler.micro_batches(step) - 1, ", not ", micro_batch, "."));
  }
  // Steps between the checkpoint and the one asked for are done again, alone: the same bits.
  World world = World::of_threads(1).front();
  auto communicator = comm::Communicator::create(world);
  sync::GradientSync gradients(
      *job.model, *communicator,
      {.most_micro_batches = job.sampler.most_micro_batches(), .leaf = config.train.leaf});
  sync::FlatState state(gradients, *communicator, optim::Optimizer::make(config.optimizer));
  Progression progression;
  Replayed result;
  if (const std::int64_t from = newest_before(folder, step); from >= 0) {
    const checkpoint::Reader reader(folder, from);
    restore(reader, state, gradients.buffers(), progression);
    result.warning = fingerprint_warning(config, job, reader);
  }
  job.model->train();
  RunConfig alone = config;
  alone.elastic = {};
  Placing all_here(alone, job.sampler.most_micro_batches(), 1);
  FaultPlan no_faults;
  elastic::SectionMarks nobody_watches;
  StepRecord record;
  for (std::int64_t k = progression.step; k < step; ++k) {
    sync::Wishes none;
    take_step({.config = config,
               .job = job,
               .gradients = gradients,
               .placing = all_here,
               .state = state,
               .faults = no_faults,
               .marks = nobody_watches},
              k, none, record);
  }

  gradients.buffers().reset();
  const data::Batch batch = train::micro_batch(job, step, micro_batch);
  const auto output = job.model->forward(model_input(*job.model, batch.input),
                                         context_of(config, step, micro_batch));
  const auto loss = model::cross_entropy(output, batch.target);
  (loss * static_cast<double>(batch.weight)).backward();
  tensor::NamedTensors named;
  std::vector<torch::Tensor> kept;
  for (const auto& [name, parameter] : gradients.tensors().trainable) {
    if (!parameter.grad().defined()) continue;
    kept.push_back(parameter.grad().contiguous());
    named[name] = {tensor::dtype_of(kept.back(), name), kept.back().sizes().vec(),
                   tensor::bytes_of(kept.back())};
  }
  result.gradient_sha256 = tensor::sha256_of(named);
  result.loss = loss.item<double>();
  result.samples = job.sampler.positions(step, micro_batch).count;
  return result;
}

checkpoint::StateHashes hash(const RunFolder& folder, std::optional<std::int64_t> step) {
  return checkpoint::hashes_of(checkpoint::Reader(folder, existing_step(folder, step)).snapshot());
}

}  // namespace yoke::train
