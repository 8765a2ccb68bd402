// The data-parallel training step against the same step without communication, and against
// PyTorch's DistributedDataParallel and Horovod; what the tree of leaves costs; what a second
// worker gives. scripts/bench-step runs it with the peers.

#include <signal.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <optional>

#include "bench/networks.h"
#include "bench/rounds.h"
#include "bench/steps.h"
#include "bench/team.h"
#include "yoke/base/error.h"
#include "yoke/tensor/worker_setup.h"

namespace yoke::bench {
namespace {

struct Options {
  std::vector<std::string> networks = {"gpt", "cnn"};
  int ranks = 2;
  int rounds = 15;
  int steps = 0;               ///< of a turn; 0: by network
  std::string torch, horovod;  ///< folders of the peers' environments; empty: not measured
  std::string peers = "bench/peers";
};

struct Size {
  std::int64_t whole;  ///< samples of a rank, as one micro-batch
  std::int64_t piece;  ///< samples of a micro-batch where there are eight
  int steps;           ///< of a turn with a whole micro-batch
  const char* words;
  const char* target_of_ddp;
};

Size size_of(const std::string& network) {
  if (network == "gpt") return {8, 2, 5, "8x128 tokens a rank", "<= 0.93"};
  return {64, 16, 20, "64 pictures a rank", "<= 0.85"};
}

/// A team whose ranks answer with the median time of `steps` steps.
Team team_of(int ranks, int steps, const std::function<std::function<void()>(const World&)>& step) {
  return Team::of_forks(ranks, [=](const World& world) -> Team::Work {
    tensor::set_up_worker(1);
    return [step = step(world), steps](const std::string&) { return milliseconds(steps, step); };
  });
}

Team yoke_team(int ranks, int steps, const StepOptions& options) {
  return team_of(ranks, steps, [=](const World& world) -> std::function<void()> {
    auto step = std::make_shared<YokeStep>(world, options);
    return [step] { (*step)(); };
  });
}

Team plain_team(int ranks, int steps, const StepOptions& options) {
  return team_of(ranks, steps, [=](const World&) { return plain_step(options); });
}

/// Both of one worker in one process, which takes turns: two processes that do the same differ by
/// up to 4 %, each for as long as it lives, by where their memory lies.
Team one_worker_team(int steps, const StepOptions& options) {
  return Team::of_forks(1, [=](const World& world) -> Team::Work {
    tensor::set_up_worker(1);
    auto yoke = std::make_shared<YokeStep>(world, options);
    return [yoke, plain = plain_step(options), steps](const std::string& line) {
      return line == "plain" ? milliseconds(steps, plain) : milliseconds(steps, [&] { (*yoke)(); });
    };
  });
}

std::vector<std::string> peer_arguments(const std::string& network, const Size& size, int steps) {
  return {"--model", network, "--batch", cat(size.whole), "--steps", cat(steps)};
}

std::vector<std::string> joined(std::vector<std::string> first,
                                const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::function<double()> turns(Team& team, const std::string& line = "step") {
  return [&team, line] { return team.mean_of_turn(line); };
}

void measure_step(const Options& options, const std::string& network) {
  const Size size = size_of(network);
  const int steps = options.steps > 0 ? options.steps : size.steps;
  StepOptions mine{.network = network, .micro_batches = 1, .samples = size.whole};
  Team plain = plain_team(options.ranks, steps, mine);
  mine.micro_batches = options.ranks;
  Team shm = yoke_team(options.ranks, steps, mine);
  mine.transport = comm::TransportKind::kTcp;
  Team tcp = yoke_team(options.ranks, steps, mine);
  const auto arguments = peer_arguments(network, size, steps);
  std::optional<Team> ddp, horovod;
  if (!options.torch.empty()) {
    ddp.emplace(Team::of_program(
        joined({options.torch + "/bin/torchrun", "--standalone", "--nproc-per-node",
                cat(options.ranks), options.peers + "/ddp_step.py"},
               arguments),
        options.ranks, /*freeze=*/false));
  }
  if (!options.horovod.empty()) {
    // Its thread polls also while no step is on the way, and gives up after half a minute in which
    // a rank is stopped.
    horovod.emplace(Team::of_program(
        joined({options.horovod + "/bin/horovodrun", "--gloo", "--gloo-timeout-seconds", "3600",
                "-np", cat(options.ranks), options.horovod + "/bin/python",
                options.peers + "/horovod_step.py"},
               arguments),
        options.ranks, /*freeze=*/true));
  }

  std::vector<Contender> all = {{"plain: each rank by itself, nothing exchanged", turns(plain)},
                                {"yoke, shared memory", turns(shm)},
                                {"yoke, TCP over loopback", turns(tcp)}};
  if (ddp) {
    all.push_back({"PyTorch, each rank by itself", turns(*ddp, "alone")});
    all.push_back({"PyTorch DDP over Gloo", turns(*ddp)});
  }
  if (horovod) all.push_back({"Horovod over Gloo", turns(*horovod)});
  alternate(all, options.rounds);

  std::vector<Row> rows = {
      {&all[0]}, {&all[1], &all[0], "plain", "<= 1.03"}, {&all[2], &all[0], "plain"}};
  if (ddp) {
    rows.push_back({&all[3], &all[0], "plain"});
    rows.push_back({&all[4], &all[3], "PyTorch by itself"});
    if (horovod) rows.push_back({&all[5], &all[3], "PyTorch by itself"});
    rows.push_back({&all[1], &all[4], "PyTorch DDP", size.target_of_ddp});
    rows.push_back({&all[2], &all[4], "PyTorch DDP"});
    if (horovod) rows.push_back({&all[1], &all[5], "Horovod"});
  }
  print_table(cat(network, ", ", size.words, ", ", options.ranks, " ranks of one thread, AdamW, ",
                  options.rounds, " rounds of ", steps, " steps:"),
              rows);
  if (!ddp) std::cout << "\nPyTorch DDP: not measured; run scripts/bench-peers\n";
  if (!horovod) std::cout << "\nHorovod: not measured; run scripts/bench-peers\n";
}

void measure_tree(const Options& options, const std::string& network) {
  const Size size = size_of(network);
  const int steps = options.steps > 0 ? options.steps : std::max(3, size.steps / 2);
  constexpr std::int64_t kMicroBatches = 8;
  const StepOptions leaves{
      .network = network, .micro_batches = kMicroBatches, .samples = size.piece};
  StepOptions whole = leaves, tcp = leaves, ring = leaves;
  whole.leaf = kMicroBatches / options.ranks;
  tcp.transport = ring.transport = comm::TransportKind::kTcp;
  ring.topology = comm::Topology::kRing;
  Team alone = one_worker_team(steps, leaves);
  Team together = yoke_team(options.ranks, steps, leaves);
  Team one_leaf = yoke_team(options.ranks, steps, whole);
  Team over_tcp = yoke_team(options.ranks, steps, tcp);
  Team over_ring = yoke_team(options.ranks, steps, ring);

  const std::string workers = cat(options.ranks, " workers, ");
  std::vector<Contender> all = {
      {"plain gradient accumulation, 1 process", turns(alone, "plain")},
      {"yoke, 1 worker, leaves of one micro-batch", turns(alone)},
      {workers + "shared memory, no order: each adds up its own, then both", turns(one_leaf)},
      {workers + "shared memory, canonical order", turns(together)},
      {workers + "TCP, ring", turns(over_ring)},
      {workers + "TCP, canonical order", turns(over_tcp)}};
  alternate(all, options.rounds);
  print_table(cat(network, ", a global batch of ", kMicroBatches, " micro-batches of ", size.piece,
                  ", ", options.rounds, " rounds of ", steps, " steps:"),
              {{&all[0]},
               {&all[1], &all[0], "plain accumulation", "<= 1.01"},
               {&all[2]},
               {&all[3], &all[2], "no order", "<= 1.03"},
               {&all[4]},
               {&all[5], &all[4], "ring", "<= 1.03"},
               {&all[3], &all[1], "1 worker", network == "gpt" ? "<= 0.6" : ""}});
}

int measure(int count, char** arguments) {
  Options options;
  CLI::App program("A data-parallel training step against its limits and its peers");
  program.add_option("--networks", options.networks, "gpt, cnn")->capture_default_str();
  program.add_option("--ranks", options.ranks)->capture_default_str();
  program.add_option("--rounds", options.rounds)->capture_default_str();
  program.add_option("--steps", options.steps, "Of a turn (default: by network)");
  program.add_option("--torch", options.torch, "Environment of PyTorch (.peers/torch)");
  program.add_option("--horovod", options.horovod, "Environment of Horovod (.peers/horovod)");
  program.add_option("--peers", options.peers, "Folder of their scripts")->capture_default_str();
  CLI11_PARSE(program, count, arguments);
  print_head(count, arguments);
  for (const auto& network : options.networks) {
    measure_step(options, network);
    measure_tree(options, network);
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
    std::cerr << "step_bench: " << error.what() << "\n";
    return 1;
  }
}
