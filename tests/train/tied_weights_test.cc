// Design, section 2.5: a parameter that stands in n layers of the list has n accumulators, added
// after the tree.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>

#include "tests/train/plain_loop.h"
#include "tests/train/tied_model.h"
#include "tests/train/training.h"
#include "yoke/checkpoint/reader.h"
#include "yoke/tensor/bridge.h"
#include "yoke/tensor/worker_setup.h"
#include "yoke/train/job.h"
#include "yoke/train/model_input.h"

namespace yoke::test {
namespace {

model::Registry registry() {
  model::Registry registry = model::Registry::with_built_in();
  registry.add("tied", make_tied);
  return registry;
}

/// A plain loop with one copy of the weight for each use: its leaves are the gradients of the
/// copies.
std::map<std::string, torch::Tensor> plain_loop(const train::RunConfig& config) {
  tensor::set_up_worker(config.train.threads);
  const train::Job job(config, "", registry());
  std::map<std::string, torch::Tensor> weights;
  for (const auto& item : job.model->named_parameters()) {
    if (item.key() != "out.weight") weights[item.key()] = item.value().detach().clone();
  }
  const std::vector<std::string> uses = {
      "in.weight",   "in.weight",   "middle.weight", "middle.weight", "middle.weight",
      "middle.bias", "middle.bias", "middle.bias",   "last.weight",   "last.bias"};
  for (std::int64_t k = 0; k < job.total_steps; ++k) {
    std::vector<Gradients> leaves;
    for (std::int64_t v = 0; v < job.sampler.micro_batches(k); ++v) {
      const data::Batch batch = train::micro_batch(job, k, v);
      std::vector<torch::Tensor> w;
      for (const auto& name : uses) w.push_back(weights[name].clone().requires_grad_());
      auto x = torch::tanh(torch::linear(batch.input, w[0]));
      for (const std::size_t i : {2, 3, 4}) x = torch::relu(torch::linear(x, w[i], w[i + 3]));
      const auto output = torch::linear(torch::matmul(x, w[1]), w[8], w[9]);
      (model::cross_entropy(output, batch.target) * static_cast<double>(batch.weight)).backward();
      leaves.emplace_back();
      for (const auto& copy : w) leaves.back().push_back(copy.grad());
    }
    const Gradients sums = tree(leaves, 0, leaves.size());
    std::map<std::string, torch::Tensor> totals;
    for (std::size_t i = 0; i < uses.size(); ++i) {
      auto& total = totals[uses[i]];
      total = total.defined() ? total + sums[i] : sums[i];
    }
    const auto samples = static_cast<double>(job.sampler.samples_of_step(k));
    for (auto& [name, weight] : weights) weight -= config.optimizer.lr * (totals[name] / samples);
  }
  return weights;
}

train::RunConfig plain_sgd() {
  train::RunConfig config = tied();
  config.optimizer = {.name = "sgd", .lr = 0.125};
  config.schedule = {};
  config.train.steps = 12;
  return config;
}

TEST(TiedWeights, AreBitEqualToACopyForEachUse) {
  const train::RunConfig config = plain_sgd();
  const auto expected = plain_loop(config);
  for (const Placement& placement :
       {Placement{1, "shm"}, Placement{3, "shm"}, Placement{2, "tcp", "full_mesh", 1024}}) {
    TemporaryFolder folder;
    const auto report = train_in(folder.path() / "run", config, placement);
    const checkpoint::Reader reader(RunFolder(folder.path() / "run"), report.steps);
    EXPECT_EQ(reader.snapshot().parameters.size(), expected.size()) << "each tensor once";
    for (const auto& [name, weight] : expected) {
      torch::Tensor trained = torch::empty_like(weight);
      reader.read("parameters/" + name, tensor::mutable_bytes_of(trained));
      EXPECT_TRUE(torch::equal(trained, weight)) << name << ", " << placement;
    }
  }
}

TEST(TiedWeights, SameBitsForAnyNumberOfWorkers) {
  const std::string alone = state_after(tied(), {});
  for (const Placement& placement :
       {Placement{2, "shm", "auto", 4 << 20, Ranks::kProcesses}, Placement{3, "tcp", "tree", 65536},
        Placement{5, "shm", "full_mesh"}, Placement{8, "tcp", "auto", 1024}}) {
    EXPECT_EQ(state_after(tied(), placement), alone) << placement;
  }
}

TEST(TiedWeights, CanBeReplayedAndEvaluated) {
  train::RunConfig config = tied();
  config.schedule = {};
  config.train.steps = 4;
  TemporaryFolder folder;
  const RunFolder run(folder.path() / "run");
  train_in(run.root(), config, {2, "shm"});
  const auto replayed = train::replay(config, run, 2, 1, "", registry());
  EXPECT_EQ(replayed.samples, 8);
  EXPECT_EQ(train::replay(config, run, 2, 1, "", registry()).gradient_sha256,
            replayed.gradient_sha256);
  EXPECT_NE(train::replay(config, run, 2, 2, "", registry()).gradient_sha256,
            replayed.gradient_sha256);
  EXPECT_GT(train::evaluate(config, run, std::nullopt, "", registry()).metrics.at("accuracy"), 0);
}

}  // namespace
}  // namespace yoke::test
