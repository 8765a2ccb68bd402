#include "yoke/train/data_parallel.h"

#include <torch/torch.h>

#include <set>

#include "yoke/base/error.h"
#include "yoke/base/log.h"
#include "yoke/base/random.h"
#include "yoke/optim/norm.h"
#include "yoke/tensor/bridge.h"
#include "yoke/tensor/fingerprint.h"
#include "yoke/tensor/named_hash.h"

namespace yoke {

namespace {

void refuse_what_cannot_be_right(torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                                 const World& world) {
  if (dynamic_cast<torch::optim::LBFGS*>(&optimizer) != nullptr) {
    throw ConfigError(
        "L-BFGS evaluates the model several times a step, which a step of several ranks cannot "
        "follow. Use SGD, "
        "Adam or another optimizer that takes one gradient a step.");
  }
  std::set<const void*> known, held;
  for (const auto& parameter : module.parameters()) known.insert(parameter.unsafeGetTensorImpl());
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      if (!held.insert(parameter.unsafeGetTensorImpl()).second) {
        throw ConfigError(
            "the optimizer holds a parameter twice and would update it twice a step. Where a "
            "weight "
            "is registered in two modules, give the optimizer each tensor once.");
      }
      if (known.contains(parameter.unsafeGetTensorImpl())) continue;
      throw ConfigError(
          "the optimizer holds a parameter that the module does not have, so its gradient would "
          "never be added over "
          "the ranks. Make the optimizer from module.parameters(), after any module.to(...).");
    }
  }
  if (!world.ranks_are_threads() || world.size() == 1) return;
  for (const auto& child : module.named_modules("module")) {
    if (child.value()->name().find("Dropout") != std::string::npos) {
      throw ConfigError(cat(
          child.key(),
          " draws from libtorch's process generator, which ranks that are threads share. Run the "
          "ranks as processes."));
    }
  }
}

void become_rank_0(const sync::ModelTensors& tensors, comm::Communicator& communicator) {
  torch::NoGradGuard no_grad;
  auto send = [&](const std::vector<sync::NamedTensor>& parameters) {
    for (const auto& parameter : parameters) {
      at::Tensor copy = parameter.tensor.detach().clone(at::MemoryFormat::Contiguous);
      communicator.broadcast(tensor::mutable_bytes_of(copy), 0);
      at::Tensor(parameter.tensor).copy_(copy);
    }
  };
  send(tensors.trainable);
  send(tensors.frozen);
}

}  // namespace

DataParallel::DataParallel(torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                           const World& world, const Options& options)
    : optimizer_(optimizer), options_(options), module_(module) {
  if (options_.global_batch <= 0)
    throw ConfigError(
        "DataParallel needs global_batch, the samples of a global batch over all ranks.");
  if (options_.micro_batch < 0 || options_.leaf <= 0)
    throw ConfigError("micro_batch and leaf of DataParallel must be positive.");
  if (options_.micro_batch == 0) options_.micro_batch = (options_.global_batch + 7) / 8;
  if (options_.micro_batch > options_.global_batch) {
    throw ConfigError(cat("micro_batch is ", options_.micro_batch, ", more than global_batch, ",
                          options_.global_batch, "."));
  }
  refuse_what_cannot_be_right(module, optimizer, world);
  communicator_ = comm::Communicator::create(
      world,
      {.transport = options_.transport, .timeout = options_.timeout, .name = "data_parallel"});
  const std::string plan =
      cat(options_.global_batch, ' ', options_.micro_batch, ' ', options_.leaf, ' ', options_.seed,
          ' ', options_.shuffle, ' ', options_.drop_last, ' ', options_.clip_norm);
  const int threads = at::get_num_threads();
  tensor::agree_on_fingerprint(world, *communicator_, tensor::fingerprint(threads, plan),
                               options_.mixed);
  if (world.rank() == 0) {
    // A run alone has nobody to compare with, and libtorch takes as many threads as there are
    // cores.
    log_info("DataParallel: ", world.size(), world.size() == 1 ? " rank, " : " ranks, ", threads,
             threads == 1 ? " thread" : " threads",
             " inside an operation (torch::set_num_threads; another number gives other bits)");
  }
  const std::int64_t most =
      (options_.global_batch + options_.micro_batch - 1) / options_.micro_batch;
  gradients_ = std::make_unique<sync::GradientSync>(
      module, *communicator_,
      sync::GradientSyncOptions{.bucket_bytes = options_.bucket_bytes,
                                .topology = options_.topology,
                                .most_micro_batches = most,
                                .leaf = options_.leaf});
  become_rank_0(gradients_->tensors(), *communicator_);
}

DataParallel::Epoch DataParallel::epoch(std::int64_t samples) {
  if (!sampler_) {
    samples_ = samples;
    sampler_ = std::make_unique<data::GlobalSampler>(
        data::GlobalSampler::Options{.samples = samples,
                                     .batch = options_.global_batch,
                                     .micro_batch = options_.micro_batch,
                                     .seed = options_.seed,
                                     .drop_last = options_.drop_last,
                                     .shuffle = options_.shuffle});
  }
  if (samples != samples_) {
    throw ConfigError(cat("epoch() was called with ", samples, " samples, before with ", samples_,
                          ". The number of samples is part of "
                          "the plan; make another DataParallel for another data set."));
  }
  const std::int64_t steps = sampler_->steps_per_epoch();
  epoch_end_ = (step_ / steps + 1) * steps;
  return Epoch(*this);
}

bool DataParallel::next(MicroBatch& micro) {
  if (awaits_backward_) {
    throw ConfigError(cat("micro-batch ", micro.index(), " of step ", micro.step(),
                          " had no backward(). Every micro-batch needs one, "
                          "or the ranks would wait for each other."));
  }
  while (step_ < epoch_end_) {
    if (!in_step_) {
      gradients_->begin_step(step_, sampler_->micro_batches(step_));
      in_step_ = true;
      given_ = 0;
    }
    const auto mine = gradients_->my_micro_batches();
    if (given_ == mine.size()) {
      finish_step();
      continue;
    }
    micro.step_ = step_;
    micro.index_ = mine[given_++];
    micro.indices_ = sampler_->indices(step_, micro.index_);
    current_size_ = micro.size();
    gradients_->begin_micro_batch(micro.index_);
    torch::manual_seed(RandomKey(options_.seed)
                           .with("data_parallel")
                           .with(static_cast<std::uint64_t>(step_))
                           .with(static_cast<std::uint64_t>(micro.index_))
                           .value());
    awaits_backward_ = true;
    return true;
  }
  return false;
}

void DataParallel::backward(const torch::Tensor& loss, std::int64_t weight) {
  if (!awaits_backward_)
    throw ConfigError(
        "backward() belongs inside the loop over epoch(), once for each micro-batch.");
  awaits_backward_ = false;
  gradients_->backward(loss, weight > 0 ? weight : current_size_);
  if (given_ == gradients_->my_micro_batches().size()) finish_step();
}

void DataParallel::finish_step() {
  FaultPlan no_faults;
  const auto outcome = gradients_->finish({}, no_faults);
  loss_ = outcome.loss;
  norm_ = outcome.norm;
  const double scale = optim::clip_scale(norm_, options_.clip_norm);
  const auto& layout = gradients_->layout();
  const auto& parameters = gradients_->tensors().trainable;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    at::Tensor parameter = parameters[i].tensor;
    if (!gradients_->present(i)) {
      parameter.mutable_grad().reset();
      continue;
    }
    // A copy: the arena is shared, and an optimizer may work in place on what it is given.
    at::Tensor mean = tensor::view_of(gradients_->exchange().reduced() + layout[i].offset,
                                      layout[i].dtype, layout[i].shape);
    parameter.mutable_grad() = scale == 1.0 ? mean.clone() : mean * scale;
  }
  optimizer_.step();
  for (const auto& parameter : parameters) at::Tensor(parameter.tensor).mutable_grad().reset();
  ++step_;
  in_step_ = false;
}

std::string DataParallel::parameters_sha256() const {
  tensor::NamedTensors named;
  std::vector<at::Tensor> kept;
  const sync::ModelTensors& tensors = gradients_->tensors();
  for (const auto* parameters : {&tensors.trainable, &tensors.frozen}) {
    for (const auto& [name, parameter] : *parameters) {
      kept.push_back(parameter.detach().contiguous());
      named[name] = {tensor::dtype_of(kept.back(), name), kept.back().sizes().vec(),
                     tensor::bytes_of(kept.back())};
    }
  }
  return tensor::sha256_of(named);
}

}  // namespace yoke
