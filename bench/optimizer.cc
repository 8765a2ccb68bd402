// One update of gpt's parameters by torch::optim, by libtorch's fused kernels, and by yoke: its
// optimizer on flat memory, and the state of one and of two workers, each of whom updates a slice.

#include <signal.h>
#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "bench/networks.h"
#include "bench/rounds.h"
#include "bench/steps.h"
#include "bench/team.h"
#include "yoke/base/error.h"
#include "yoke/tensor/worker_setup.h"

namespace yoke::bench {
namespace {

using Update = std::function<void()>;
constexpr double kRate = 1e-4, kMomentum = 0.9, kDecay = 0.01;

bool is_adam(const std::string& name) {
  return name == "adamw";
}

optim::OptimizerOptions options_of(const std::string& name) {
  if (is_adam(name)) return {.name = name, .lr = kRate, .weight_decay = kDecay};
  return {.name = name, .lr = kRate, .momentum = kMomentum};
}

std::vector<torch::Tensor> parameters_with_gradients() {
  auto parameters = make_network("gpt")->parameters();
  for (auto& parameter : parameters) parameter.mutable_grad() = 0.01 * torch::randn_like(parameter);
  return parameters;
}

Update torch_optimizer(const std::string& name) {
  auto parameters = parameters_with_gradients();
  std::shared_ptr<torch::optim::Optimizer> optimizer;
  if (is_adam(name)) {
    optimizer = std::make_shared<torch::optim::AdamW>(
        parameters, torch::optim::AdamWOptions(kRate).weight_decay(kDecay));
  } else {
    optimizer = std::make_shared<torch::optim::SGD>(
        parameters, torch::optim::SGDOptions(kRate).momentum(kMomentum));
  }
  return [optimizer] { optimizer->step(); };
}

Update fused_kernel(const std::string& name) {
  struct State {
    std::vector<torch::Tensor> parameters, gradients, first, second, steps;
  };
  auto state = std::make_shared<State>();
  state->parameters = parameters_with_gradients();
  for (const auto& parameter : state->parameters) {
    state->gradients.push_back(parameter.grad());
    state->first.push_back(torch::zeros_like(parameter));
    state->second.push_back(torch::zeros_like(parameter));
    state->steps.push_back(torch::ones({}));
  }
  if (is_adam(name)) {
    return [state] {
      torch::NoGradGuard no_grad;
      at::_fused_adamw_(state->parameters, state->gradients, state->first, state->second, {},
                        state->steps, kRate, 0.9, 0.999, kDecay, 1e-8, /*amsgrad=*/false,
                        /*maximize=*/false);
    };
  }
  return [state] {
    torch::NoGradGuard no_grad;
    at::_fused_sgd_(state->parameters, state->gradients, state->first, /*weight_decay=*/0.0,
                    kMomentum, kRate, /*dampening=*/0.0, /*nesterov=*/false, /*maximize=*/false,
                    /*is_first_step=*/false);
  };
}

Update flat_optimizer(const std::string& name) {
  struct State {
    std::unique_ptr<optim::Optimizer> optimizer;
    torch::Tensor values, gradient;
    std::vector<torch::Tensor> slots;
    std::int64_t updates = 0;
  };
  auto state = std::make_shared<State>();
  state->optimizer = optim::Optimizer::make(options_of(name));
  std::int64_t elements = 0;
  for (const auto& parameter : make_network("gpt")->parameters()) elements += parameter.numel();
  state->values = torch::randn({elements});
  state->gradient = 0.01 * torch::randn({elements});
  for (std::size_t i = 0; i < state->optimizer->slots().size(); ++i)
    state->slots.push_back(torch::zeros({elements}));
  return [state] {
    const auto count = static_cast<std::size_t>(state->values.numel());
    std::vector<float*> slots;
    for (auto& slot : state->slots) slots.push_back(slot.mutable_data_ptr<float>());
    state->optimizer->step_in_place<float>({state->values.mutable_data_ptr<float>(), count},
                                           {state->gradient.const_data_ptr<float>(), count}, slots,
                                           kRate, ++state->updates, 1.0);
  };
}

Team team_of(int ranks, int steps, const std::function<Update()>& make) {
  return Team::of_forks(ranks, [=](const World&) -> Team::Work {
    tensor::set_up_worker(1);
    return [update = make(), steps](const std::string&) { return milliseconds(steps, update); };
  });
}

/// The whole of FlatState::update: redo slots, notes and the barrier at its end too.
Team state_team(int ranks, int steps, const std::string& name) {
  return Team::of_forks(ranks, [=](const World& world) -> Team::Work {
    tensor::set_up_worker(1);
    auto step = std::make_shared<YokeStep>(
        world,
        StepOptions{.network = "gpt", .micro_batches = ranks, .optimizer = options_of(name)});
    (*step)();
    return [step, steps](const std::string&) {
      return milliseconds(
          steps, [&] { step->update(); }, [&] { step->communicator().barrier(); });
    };
  });
}

void compare(const std::string& name, int rounds, int steps) {
  Team torch_one = team_of(1, steps, [=] { return torch_optimizer(name); });
  Team torch_two = team_of(2, steps, [=] { return torch_optimizer(name); });
  Team fused = team_of(1, steps, [=] { return fused_kernel(name); });
  Team flat = team_of(1, steps, [=] { return flat_optimizer(name); });
  Team state_one = state_team(1, steps, name);
  Team state_two = state_team(2, steps, name);
  const auto turns = [](Team& team) { return [&team] { return team.mean_of_turn("update"); }; };
  std::vector<Contender> all = {{"torch::optim, 1 process", turns(torch_one)},
                                {"torch::optim, 2 processes, each all of it", turns(torch_two)},
                                {"libtorch's fused kernel, 1 process", turns(fused)},
                                {"yoke's optimizer on flat memory, 1 process", turns(flat)},
                                {"yoke's state, 1 worker", turns(state_one)},
                                {"yoke's state, 2 workers, each half of it", turns(state_two)}};
  alternate(all, rounds);
  print_table(cat(is_adam(name) ? "AdamW" : "SGD with momentum",
                  ", 3.24 million parameters (gpt), ", rounds, " rounds of ", steps, " updates:"),
              {{&all[0]},
               {&all[1], &all[0], "torch::optim"},
               {&all[2], &all[0], "torch::optim"},
               {&all[3], &all[0], "torch::optim"},
               {&all[4], &all[0], "torch::optim"},
               {&all[5], &all[1], "torch::optim, 2 processes"}});
}

int measure(int count, char** arguments) {
  int rounds = 15, steps = 30;
  CLI::App program("The optimizer's part of a step");
  program.add_option("--rounds", rounds)->capture_default_str();
  program.add_option("--steps", steps, "Updates of a turn")->capture_default_str();
  CLI11_PARSE(program, count, arguments);
  print_head(count, arguments);
  for (const char* name : {"adamw", "sgd"}) compare(name, rounds, steps);
  return 0;
}

}  // namespace
}  // namespace yoke::bench

int main(int count, char** arguments) {
  ::signal(SIGPIPE, SIG_IGN);  // A rank that is gone is an error that is thrown.
  try {
    return yoke::bench::measure(count, arguments);
  } catch (const std::exception& error) {
    std::cerr << "optimizer_bench: " << error.what() << "\n";
    return 1;
  }
}
