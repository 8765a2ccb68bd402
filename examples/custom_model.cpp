// A model of one's own under yoke's whole training loop: data sets, schedules, evaluation,
// checkpoints, resume.
//
//   ./custom_model data/digits.csv.gz runs/custom                       alone
//   yoke launch -n 3 -- ./custom_model data/digits.csv.gz runs/custom   the same weights, bit for
//   bit
//
// Started again, it goes on where the folder's newest checkpoint is.
#include <torch/torch.h>

#include <cstdint>
#include <iostream>
#include <memory>

#include "yoke/base/exit_code.h"
#include "yoke/yoke.h"

// A multi-layer perceptron with a shortcut: plain libtorch, it knows nothing of yoke.
struct Shortcut : torch::nn::Module {
  torch::nn::Linear enter{nullptr}, inner{nullptr}, leave{nullptr};
  torch::nn::Dropout dropout{nullptr};

  Shortcut(std::int64_t inputs, std::int64_t classes, const yoke::model::ModelOptions& options) {
    enter = register_module("enter", torch::nn::Linear(inputs, options.hidden));
    inner = register_module("inner", torch::nn::Linear(options.hidden, options.hidden));
    leave = register_module("leave", torch::nn::Linear(options.hidden, classes));
    dropout = register_module("dropout", torch::nn::Dropout(options.dropout));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const auto h = torch::relu(enter(x));
    return leave(h + dropout(torch::relu(inner(h))));
  }
};

std::shared_ptr<yoke::model::LayerList> make_shortcut(const yoke::model::ModelOptions& options,
                                                      const yoke::data::Shape& shape,
                                                      std::uint64_t seed) {
  torch::manual_seed(seed);  // the initial weights
  auto net = std::make_shared<Shortcut>(shape.input.at(0), shape.classes, options);
  auto layers = std::make_shared<yoke::model::LayerList>();
  layers->add("shortcut", std::make_shared<yoke::model::ModuleLayer<Shortcut>>(net));
  return layers;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: custom_model DATA.csv.gz RUN\n";
    return yoke::kExitUsage;
  }
  try {
    yoke::train::RunConfig config;  // docs/configuration.md; a ConfigTree reads it from a TOML file
    config.data = {.kind = "csv", .path = argv[1], .scale = 1.0 / 16};
    config.model = {.name = "shortcut", .hidden = 96, .dropout = 0.1};
    config.optimizer = {.name = "adamw", .lr = 0.003};
    config.schedule = {.name = "cosine", .warmup = 10};
    config.train = {.seed = 3, .batch = 64, .micro_batch = 8, .epochs = 10};

    auto registry = yoke::model::Registry::with_built_in();
    registry.add("shortcut", make_shortcut);

    const auto world = yoke::World::from_environment();
    yoke::train::RunOptions options;
    options.folder = yoke::RunFolder(argv[2]);
    if (world.rank() == 0) {
      yoke::ConfigTree tree;
      yoke::train::bind(tree, config);
      yoke::train::prepare_folder(options.folder, tree, /*fresh=*/false);
    }
    const auto report = yoke::train::run(config, world, options, registry);
    if (world.rank() == 0) {
      std::cout << "test accuracy " << 100.0 * report.metrics.at("test_accuracy") << " %\nstate "
                << report.state_sha256 << "\n";
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return yoke::exit_code_of(error);
  }
}
