// Memory of the workers of a gpt: the sum of their proportional set sizes (a page that n processes
// share counts as 1/n of it in each), after two steps. scripts/bench-start runs it.

#include <signal.h>
#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <numeric>

#include "bench/networks.h"
#include "bench/rounds.h"
#include "bench/steps.h"
#include "bench/team.h"
#include "yoke/base/error.h"
#include "yoke/model/loss.h"
#include "yoke/tensor/worker_setup.h"

namespace yoke::bench {
namespace {

double proportional_set_mib() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("Pss:")) return std::stod(line.substr(4)) / 1024;
  throw Error("/proc/self/smaps_rollup has no line Pss.");
}

/// What a rank of a program with libtorch alone holds: parameters, gradients and AdamW's state of
/// its own.
std::function<void()> libtorch_step(std::int64_t samples) {
  auto model = make_network("gpt");
  auto optimizer = std::make_shared<torch::optim::AdamW>(model->parameters());
  return [=, batch = make_batch("gpt", samples, 1)] {
    optimizer->zero_grad();
    model::cross_entropy(model->forward(batch.input, {}), batch.target).backward();
    optimizer->step();
  };
}

using Maker = std::function<std::function<void()>(const World&)>;

double sum_of_team(int ranks, const Maker& make) {
  Team team = Team::of_forks(ranks, [&](const World& world) -> Team::Work {
    tensor::set_up_worker(1);
    return [step = make(world)](const std::string& line) {
      if (line == "step") step();
      return proportional_set_mib();
    };
  });
  for (int i = 0; i < 2; ++i) team.turn("step");
  const auto each = team.turn("measure");  // When all are at rest.
  return std::accumulate(each.begin(), each.end(), 0.0);
}

Maker yoke_maker(int ranks, std::int64_t samples, comm::TransportKind transport) {
  return [=](const World& world) -> std::function<void()> {
    auto step = std::make_shared<YokeStep>(
        world,
        StepOptions{
            .network = "gpt", .micro_batches = ranks, .samples = samples, .transport = transport});
    return [step] { (*step)(); };
  };
}

int measure(int count, char** arguments) {
  std::vector<int> workers = {1, 2, 4, 8};
  std::int64_t samples = 1;
  std::string torch, peers = "bench/peers";
  CLI::App program("Memory of the workers of a gpt");
  program.add_option("--workers", workers)->capture_default_str();
  program.add_option("--samples", samples, "Of a worker")->capture_default_str();
  program.add_option("--torch", torch, "Environment of PyTorch (.peers/torch)");
  program.add_option("--peers", peers, "Folder of its script")->capture_default_str();
  CLI11_PARSE(program, count, arguments);
  print_head(count, arguments);
  std::cout << "\ngpt, 3.24 million parameters, " << samples
            << "x128 tokens a worker, AdamW: MiB of all workers (of each):\n\n"
            << "| workers | yoke, shared memory | yoke, TCP | libtorch, private copies | PyTorch "
               "DDP |\n|---|---|---|---|---|\n";
  const auto cell = [](double sum, int ranks) {
    return cat(fixed(sum, 0), " (", fixed(sum / ranks, 0), ")");
  };
  for (const int ranks : workers) {
    const double shm =
        sum_of_team(ranks, yoke_maker(ranks, samples, comm::TransportKind::kSharedMemory));
    const double tcp = sum_of_team(ranks, yoke_maker(ranks, samples, comm::TransportKind::kTcp));
    const double alone = sum_of_team(ranks, [=](const World&) { return libtorch_step(samples); });
    std::string ddp = "not measured: run scripts/bench-peers";
    if (!torch.empty()) {
      Team team = Team::of_program(
          {torch + "/bin/torchrun", "--standalone", "--nproc-per-node", cat(ranks),
           peers + "/ddp_step.py", "--model", "gpt", "--batch", cat(samples), "--steps", "2"},
          ranks, /*freeze=*/false);
      team.turn("step");
      const auto each = team.turn("memory");
      ddp = cell(std::accumulate(each.begin(), each.end(), 0.0), ranks);
    }
    std::cout << "| " << ranks << " | " << cell(shm, ranks) << " | " << cell(tcp, ranks) << " | "
              << cell(alone, ranks) << " | " << ddp << " |" << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace yoke::bench

int main(int count, char** arguments) {
  ::signal(SIGPIPE, SIG_IGN);  // A rank that is gone is an error that is thrown.
  try {
    return yoke::bench::measure(count, arguments);
  } catch (const std::exception& error) {
    std::cerr << "memory_bench: " << error.what() << "\n";
    return 1;
  }
}
