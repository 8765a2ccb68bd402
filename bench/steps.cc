#include "bench/steps.h"

#include <torch/torch.h>

#include "bench/networks.h"
#include "bench/rounds.h"
#include "yoke/model/loss.h"

namespace yoke::bench {
namespace {

struct PlainState {
  std::shared_ptr<model::LayerList> model;
  std::vector<data::Batch> batches;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::vector<std::vector<std::vector<float>>> slots;  ///< by parameter
  std::int64_t updates = 0;
};

at::Tensor loss_of(model::LayerList& model, const data::Batch& batch) {
  return model::cross_entropy(model.forward(batch.input, {}), batch.target);
}

}  // namespace

std::function<void()> plain_step(const StepOptions& options) {
  auto state = std::make_shared<PlainState>();
  state->model = make_network(options.network);
  state->optimizer = optim::Optimizer::make(options.optimizer);
  for (std::int64_t v = 0; v < options.micro_batches; ++v)
    state->batches.push_back(
        make_batch(options.network, options.samples, static_cast<std::uint64_t>(v)));
  for (const auto& parameter : state->model->parameters()) {
    state->slots.emplace_back(
        state->optimizer->slots().size(),
        std::vector<float>(static_cast<std::size_t>(parameter.numel()), 0.0f));
  }
  return [state, lr = options.optimizer.lr] {
    auto parameters = state->model->parameters();
    for (auto& parameter : parameters) parameter.mutable_grad().reset();
    for (const auto& batch : state->batches)
      (loss_of(*state->model, batch) / static_cast<double>(state->batches.size())).backward();
    ++state->updates;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto gradient = parameters[i].grad().contiguous();
      const auto count = static_cast<std::size_t>(gradient.numel());
      std::vector<float*> slots;
      for (auto& slot : state->slots[i]) slots.push_back(slot.data());
      state->optimizer->step_in_place<float>({parameters[i].mutable_data_ptr<float>(), count},
                                             {gradient.const_data_ptr<float>(), count}, slots, lr,
                                             state->updates, 1.0);
    }
  };
}

YokeStep::YokeStep(const World& world, const StepOptions& options)
    : options_(options),
      communicator_(comm::Communicator::create(world, {.transport = options.transport})),
      model_(make_network(options.network)),
      gradients_(std::make_unique<sync::GradientSync>(
          *model_, *communicator_,
          sync::GradientSyncOptions{.topology = options.topology,
                                    .most_micro_batches = options.micro_batches,
                                    .leaf = options.leaf})),
      state_(std::make_unique<sync::FlatState>(*gradients_, *communicator_,
                                               optim::Optimizer::make(options.optimizer))) {
  model_->train();
  gradients_->begin_step(0, options.micro_batches);
  const auto mine = gradients_->my_micro_batches();
  for (const std::int64_t v : mine)
    batches_.push_back(make_batch(options.network, options.samples, static_cast<std::uint64_t>(v)));
}

void YokeStep::operator()() {
  gradients_->begin_step(step_, options_.micro_batches);
  const auto mine = gradients_->my_micro_batches();
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const auto& batch = batches_[i];
    gradients_->begin_micro_batch(mine[i]);
    gradients_->backward(loss_of(*model_, batch), batch.weight);
  }
  gradients_->finish({}, faults_);
  update();
}

void YokeStep::update() {
  state_->update(step_, options_.optimizer.lr, /*scale=*/1.0, faults_);
  ++step_;
}

double milliseconds(int steps, const std::function<void()>& step,
                    const std::function<void()>& before) {
  std::vector<double> times;
  for (int i = 0; i < steps; ++i) {
    if (before) before();
    const auto start = Clock::now();
    step();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  return median(std::move(times));
}

}  // namespace yoke::bench
