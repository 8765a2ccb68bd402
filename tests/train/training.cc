#include "tests/train/training.h"

#include <gtest/gtest.h>

#include <mutex>
#include <nlohmann/json.hpp>

#include "tests/support/spawn_ranks.h"
#include "tests/train/tied_model.h"

namespace yoke::test {

namespace {

std::string data_file(const std::string& name) {
  return std::string(YOKE_DATA_FOLDER) + "/" + name;
}

train::RunReport train_as(const World& world, const train::RunConfig& config,
                          const train::RunOptions& options) {
  model::Registry registry = model::Registry::with_built_in();
  registry.add("tied", make_tied);
  return train::run(config, world, options, registry);
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Placement& p) {
  return out << p.workers << " workers as "
             << (p.ranks == Ranks::kThreads ? "threads" : "processes") << ", " << p.transport
             << ", " << p.topology << ", buckets of " << p.bucket_bytes << ", " << p.policy;
}

train::RunConfig digits() {
  train::RunConfig config;
  config.data.path = data_file("digits.csv.gz");
  config.data.scale = 0.0625;
  config.data.hold_out = 0.2;
  config.model.hidden = 48;
  config.model.dropout = 0.1;
  config.train.seed = 3;
  config.train.batch = 50;
  config.train.micro_batch = 8;
  config.train.steps = 30;
  config.optimizer = {
      .name = "sgd", .lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 1e-4};
  config.schedule = {.name = "linear", .warmup = 5};
  return config;
}

train::RunConfig mnist() {
  train::RunConfig config;
  config.data.kind = "idx";
  // The small file serves for training: a step is what is tested, not how well it learns.
  config.data.path = data_file("t10k-images-idx3-ubyte.gz");
  config.data.labels = data_file("t10k-labels-idx1-ubyte.gz");
  config.data.hold_out = 0.05;
  config.model.name = "cnn";
  config.model.channels = 4;
  config.model.dropout = 0.25;
  config.train.batch = 32;
  config.train.micro_batch = 4;
  config.train.steps = 30;
  config.optimizer = {.name = "adam", .lr = 0.003};
  return config;
}

train::RunConfig gpt() {
  train::RunConfig config;
  config.data.kind = "text";
  config.data.path = data_file("pride_and_prejudice.txt.gz");
  config.data.length = 24;
  config.data.hold_out = 0.005;
  config.model.name = "gpt";
  config.model.width = 32;
  config.model.depth = 2;
  config.model.heads = 2;
  config.model.dropout = 0.1;
  config.train.batch = 12;
  config.train.micro_batch = 2;
  config.train.steps = 30;
  config.train.clip_norm = 1.0;
  config.train.eval_every = 15;
  config.optimizer = {.name = "adamw", .lr = 0.002, .weight_decay = 0.1};
  config.schedule = {.name = "cosine", .warmup = 10, .final_ratio = 0.1};
  return config;
}

train::RunConfig tied() {
  train::RunConfig config = digits();
  config.model.name = "tied";
  config.model.hidden = 32;
  return config;
}

train::RunReport train_in(const std::filesystem::path& folder, train::RunConfig config,
                          const Placement& placement, std::optional<std::int64_t> stop_after) {
  config.comm.transport = placement.transport;
  config.comm.topology = placement.topology;
  config.comm.bucket_bytes = placement.bucket_bytes;
  config.elastic.placement = placement.policy;
  train::RunOptions options;
  options.folder = RunFolder(folder);
  options.stop_after = stop_after;
  options.folder.create();
  if (placement.ranks == Ranks::kProcesses) {
    const auto outcomes = run_processes(placement.workers, [&](World world) {
      train_as(world, config, options);
      return std::string();
    });
    for (const Outcome& outcome : outcomes)
      EXPECT_EQ(outcome.exit_code, 0) << placement << ": " << outcome;
    const auto file = nlohmann::json::parse(read_file(options.folder.report()));
    train::RunReport report;
    report.status = file.at("status");
    report.steps = file.at("steps");
    report.state_sha256 = file.at("state_sha256");
    return report;
  }
  std::mutex mutex;
  train::RunReport leader;
  run_threads(placement.workers, [&](World world) {
    train::RunReport report = train_as(world, config, options);
    std::lock_guard lock(mutex);
    if (world.rank() == 0) leader = std::move(report);
  });
  return leader;
}

std::string state_after(const train::RunConfig& config, const Placement& placement) {
  TemporaryFolder folder;
  const train::RunReport report = train_in(folder.path() / "run", config, placement);
  EXPECT_EQ(report.status, "finished") << placement;
  EXPECT_EQ(report.state_sha256.size(), 64U) << placement;
  return report.state_sha256;
}

}  // namespace yoke::test
