#include <gtest/gtest.h>
#include <torch/torch.h>

#include "yoke/optim/norm.h"
#include "yoke/optim/optimizer.h"

namespace yoke::optim {
namespace {

/// Largest difference, relative to the larger of the result and `size`: the terms that were added
/// up to it, whose rounding stays when they cancel.
double difference(const torch::Tensor& ours, const torch::Tensor& theirs,
                  const torch::Tensor& size) {
  auto scale = torch::maximum(theirs.abs(), size.abs()).clamp_min(1e-30);
  return ((ours - theirs).abs() / scale).max().item<double>();
}

std::unique_ptr<torch::optim::Optimizer> torch_optimizer(const OptimizerOptions& o,
                                                         const torch::Tensor& parameter) {
  std::vector<torch::Tensor> parameters{parameter};
  if (o.name == "sgd") {
    return std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(o.lr)
                                                               .momentum(o.momentum)
                                                               .dampening(o.dampening)
                                                               .nesterov(o.nesterov)
                                                               .weight_decay(o.weight_decay));
  }
  std::tuple<double, double> betas{o.beta1, o.beta2};
  if (o.name == "adam") {
    return std::make_unique<torch::optim::Adam>(
        parameters,
        torch::optim::AdamOptions(o.lr).betas(betas).eps(o.epsilon).weight_decay(o.weight_decay));
  }
  return std::make_unique<torch::optim::AdamW>(
      parameters,
      torch::optim::AdamWOptions(o.lr).betas(betas).eps(o.epsilon).weight_decay(o.weight_decay));
}

torch::Tensor torch_slot(torch::optim::Optimizer& optimizer, const torch::Tensor& parameter,
                         const std::string& slot) {
  auto& state = *optimizer.state().at(parameter.unsafeGetTensorImpl());
  if (slot == "momentum_buffer")
    return static_cast<torch::optim::SGDParamState&>(state).momentum_buffer();
  if (auto* adam = dynamic_cast<torch::optim::AdamParamState*>(&state)) {
    return slot == "exp_avg" ? adam->exp_avg() : adam->exp_avg_sq();
  }
  auto& adamw = dynamic_cast<torch::optim::AdamWParamState&>(state);
  return slot == "exp_avg" ? adamw.exp_avg() : adamw.exp_avg_sq();
}

std::vector<OptimizerOptions> combinations() {
  std::vector<OptimizerOptions> all;
  for (double decay : {0.0, 0.05}) {
    for (double momentum : {0.0, 0.9}) {
      for (double dampening : {0.0, 0.4}) {
        all.push_back({.name = "sgd",
                       .lr = 0.1,
                       .momentum = momentum,
                       .dampening = dampening,
                       .weight_decay = decay});
      }
    }
    all.push_back(
        {.name = "sgd", .lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = decay});
    for (const char* name : {"adam", "adamw"}) {
      all.push_back({.name = name, .lr = 0.003, .weight_decay = decay});
      all.push_back({.name = name,
                     .lr = 0.003,
                     .weight_decay = decay,
                     .beta1 = 0.5,
                     .beta2 = 0.7,
                     .epsilon = 1e-4});
    }
  }
  return all;
}

/// Ten updates, each compared by itself: both start from the same bits and end within rounding of
/// each other.
template <typename T>
void compare(torch::ScalarType dtype, double bound) {
  for (const auto& options : combinations()) {
    torch::manual_seed(7);
    auto theirs = torch::randn({2500}, dtype).requires_grad_(true);
    auto reference = torch_optimizer(options, theirs);
    auto optimizer = Optimizer::make(options);
    auto names = optimizer->slots();
    for (int update = 1; update <= 10; ++update) {
      auto gradient = torch::randn({2500}, dtype);
      auto ours = theirs.detach().clone();
      auto before = ours.clone();
      std::vector<torch::Tensor> slots, slots_before;
      std::vector<T*> places;
      for (const auto& name : names) {
        slots.push_back(update == 1 ? torch::zeros_like(ours)
                                    : torch_slot(*reference, theirs, name).clone());
        slots_before.push_back(slots.back().clone());
        places.push_back(slots.back().data_ptr<T>());
      }
      optimizer->step_in_place(std::span<T>(ours.data_ptr<T>(), 2500),
                               std::span<const T>(gradient.data_ptr<T>(), 2500),
                               std::span<T* const>(places), options.lr, update, 1.0);
      theirs.mutable_grad() = gradient.clone();
      reference->step();
      auto where = options.name + ", update " + std::to_string(update);
      auto size = torch::maximum(before.abs(), options.lr * gradient.abs());
      if (options.momentum > 0) size = torch::maximum(size, options.lr * slots[0].abs());
      EXPECT_LT(difference(ours, theirs.detach(), size), bound) << where;
      for (std::size_t i = 0; i < names.size(); ++i) {
        auto terms = torch::maximum(slots_before[i].abs(),
                                    names[i] == "exp_avg_sq" ? gradient.square() : gradient.abs());
        EXPECT_LT(difference(slots[i], torch_slot(*reference, theirs, names[i]), terms), bound)
            << where << ", " << names[i];
      }
    }
  }
}

TEST(OptimizerAgainstTorch, EveryUpdateInFloat32) {
  compare<float>(torch::kFloat32, 1e-6);
}

TEST(OptimizerAgainstTorch, EveryUpdateInFloat64) {
  compare<double>(torch::kFloat64, 1e-14);
}

TEST(ClipScaleAgainstTorch, ScalesTheGradientAsClipGradNormDoes) {
  torch::manual_seed(1);
  for (double max_norm : {0.5, 3.0, 1000.0}) {
    auto parameter = torch::zeros({5000}, torch::kFloat64).requires_grad_(true);
    auto gradient = torch::randn({5000}, torch::kFloat64);
    parameter.mutable_grad() = gradient.clone();
    double norm = torch::nn::utils::clip_grad_norm_(parameter, max_norm);
    std::vector<double> sums(5);
    block_squares(std::span<const double>(gradient.data_ptr<double>(), 5000), sums);
    double ours = std::sqrt(tree_sum(sums));
    EXPECT_NEAR(ours / norm, 1.0, 1e-14);
    EXPECT_LT(difference(gradient * clip_scale(ours, max_norm), parameter.grad(), gradient), 1e-14);
  }
}

}  // namespace
}  // namespace yoke::optim
