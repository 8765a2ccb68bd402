// An ordinary libtorch training loop with its own module, data and optimizer. The lines marked
// "yoke" make it data parallel:
//
//   ./minimal_loop                          alone
//   yoke launch -n 2 -- ./minimal_loop      the same weights, bit for bit; also under torchrun,
//   mpirun or srun
#include <torch/torch.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <numbers>
#include <utility>

#include "yoke/base/exit_code.h"
#include "yoke/yoke.h"

struct Net : torch::nn::Module {
  torch::nn::Linear first{nullptr}, second{nullptr}, third{nullptr};

  Net() {
    first = register_module("first", torch::nn::Linear(2, 64));
    second = register_module("second", torch::nn::Linear(64, 64));
    third = register_module("third", torch::nn::Linear(64, 3));
  }
  torch::Tensor forward(torch::Tensor x) {
    return third(torch::relu(second(torch::relu(first(x)))));
  }
};

// Three arms of a spiral: points in the plane and the arm that each lies on. The same on every
// rank.
std::pair<torch::Tensor, torch::Tensor> spirals(std::int64_t points) {
  torch::manual_seed(7);
  const auto arm = torch::arange(points) % 3;
  const auto radius = torch::rand(points);
  const auto angle =
      4.0 * radius + arm * (2.0 * std::numbers::pi / 3.0) + 0.1 * torch::randn(points);
  return {torch::stack({radius * torch::cos(angle), radius * torch::sin(angle)}, 1), arm};
}

int main() {
  try {
    const auto world = yoke::World::from_environment();  // yoke
    torch::set_num_threads(1);
    const auto [points, arms] = spirals(3000);

    auto model = std::make_shared<Net>();
    torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.2).momentum(0.9));
    yoke::DataParallel trainer(*model, optimizer, world,  // yoke
                               {.global_batch = 256, .micro_batch = 32, .seed = 1});

    for (int epoch = 0; epoch < 20; ++epoch) {
      for (auto& micro : trainer.epoch(points.size(0))) {  // yoke: the micro-batches of this rank
        const auto index = torch::tensor(micro.indices());
        const auto loss = torch::cross_entropy_loss(model->forward(points.index_select(0, index)),
                                                    arms.index_select(0, index));
        trainer.backward(loss);  // yoke: also calls the optimizer when a global batch is complete
      }
    }

    if (world.rank() == 0) {
      const auto right = model->forward(points).argmax(1).eq(arms).to(torch::kFloat64).mean();
      std::cout << "accuracy " << 100.0 * right.item<double>() << " %\nparameters "
                << trainer.parameters_sha256() << "\n";
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return yoke::exit_code_of(error);
  }
}
