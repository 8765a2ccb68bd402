// Law 2: equal to one process. Oracle A is a plain libtorch loop that adds in the same tree; oracle
// B the ordinary loop over the whole batch.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <mutex>

#include "tests/support/spawn_ranks.h"
#include "tests/train/plain_loop.h"
#include "tests/train/training.h"
#include "yoke/base/error.h"
#include "yoke/checkpoint/reader.h"
#include "yoke/optim/schedule.h"
#include "yoke/tensor/bridge.h"
#include "yoke/tensor/worker_setup.h"
#include "yoke/train/data_parallel.h"
#include "yoke/train/job.h"
#include "yoke/train/model_input.h"

namespace yoke::test {
namespace {

Gradients take_gradients(torch::nn::Module& model) {
  Gradients taken;
  for (auto& parameter : model.parameters()) {
    taken.push_back(parameter.grad().defined() ? parameter.grad().clone() : torch::Tensor());
    parameter.mutable_grad().reset();
  }
  return taken;
}

/// Twenty lines of libtorch: the whole run of a model without buffers, with torch::optim.
std::map<std::string, torch::Tensor> oracle_a(const train::RunConfig& config) {
  tensor::set_up_worker(config.train.threads);
  const train::Job job(config, "", model::Registry::with_built_in());
  torch::optim::SGD optimizer(job.model->parameters(),
                              torch::optim::SGDOptions(config.optimizer.lr));
  job.model->train();
  for (std::int64_t k = 0; k < job.total_steps; ++k) {
    std::vector<Gradients> leaves;
    std::int64_t samples = 0;
    for (std::int64_t v = 0; v < job.sampler.micro_batches(k); ++v) {
      const data::Batch batch = train::micro_batch(job, k, v);
      const auto output = job.model->forward(batch.input, train::context_of(config, k, v));
      (model::cross_entropy(output, batch.target) * static_cast<double>(batch.weight)).backward();
      leaves.push_back(take_gradients(*job.model));
      samples += batch.weight;
    }
    const Gradients sum = tree(leaves, 0, leaves.size());
    for (std::size_t i = 0; i < sum.size(); ++i)
      job.model->parameters()[i].mutable_grad() = sum[i] / static_cast<double>(samples);
    optimizer.step();
    take_gradients(*job.model);
  }
  std::map<std::string, torch::Tensor> result;
  for (auto& item : job.model->named_parameters()) result[item.key()] = item.value().detach();
  return result;
}

/// Plain gradient descent rounds the same way in torch::optim and in ours, so equality is exact.
train::RunConfig plain_sgd(train::RunConfig config) {
  config.optimizer = {.name = "sgd", .lr = 0.125};
  config.schedule = {};
  config.train.clip_norm = 0;
  config.train.steps = 12;
  return config;
}

void expect_equal_to_oracle_a(const train::RunConfig& config, const Placement& placement) {
  const auto expected = oracle_a(config);
  TemporaryFolder folder;
  const auto report = train_in(folder.path() / "run", config, placement);
  const checkpoint::Reader reader(RunFolder(folder.path() / "run"), report.steps);
  ASSERT_EQ(reader.snapshot().parameters.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    torch::Tensor trained = torch::empty_like(tensor, at::MemoryFormat::Contiguous);
    reader.read("parameters/" + name, tensor::mutable_bytes_of(trained));
    EXPECT_TRUE(torch::equal(trained, tensor)) << (trained - tensor).abs().max().item<double>()
                                               << " at most apart in " << name << ", " << placement;
  }
}

TEST(OracleA, DigitsBitForBit) {
  expect_equal_to_oracle_a(plain_sgd(digits()), {3, "shm"});
}

TEST(OracleA, GptBitForBit) {
  expect_equal_to_oracle_a(plain_sgd(gpt()), {4, "tcp", "full_mesh", 1024});
}

/// Oracle B: the gradient of the first step against one backward over the whole batch.
double distance_of_first_gradient(train::RunConfig config, const Placement& placement) {
  config.model.dropout = 0;
  config.train.steps = 1;
  config.schedule = {};
  config.train.clip_norm = 0;
  config.optimizer = {.name = "sgd", .lr = 1.0};
  tensor::set_up_worker(config.train.threads);
  const train::Job job(config, "", model::Registry::with_built_in());
  std::vector<std::int64_t> all;
  for (std::int64_t v = 0; v < job.sampler.micro_batches(0); ++v) {
    for (const std::int64_t index : job.sampler.indices(0, v)) all.push_back(index);
  }
  const data::Batch batch = job.data.train->get(all);
  model::cross_entropy(job.model->forward(train::model_input(*job.model, batch.input), {}),
                       batch.target)
      .backward();

  // One step with rate 1 moves the weights by the gradient; the weights before are the job's.
  TemporaryFolder folder;
  train_in(folder.path() / "run", config, placement);
  const checkpoint::Reader reader(RunFolder(folder.path() / "run"), 1);
  double error = 0;
  double norm = 0;
  for (auto& item : job.model->named_parameters()) {
    torch::Tensor after = torch::empty_like(item.value(), at::MemoryFormat::Contiguous);
    reader.read("parameters/" + item.key(), tensor::mutable_bytes_of(after));
    const auto found = (item.value().detach() - after).to(torch::kDouble);
    error += (found - item.value().grad()).square().sum().item<double>();
    norm += item.value().grad().to(torch::kDouble).square().sum().item<double>();
  }
  return std::sqrt(error / norm);
}

TEST(OracleB, FirstGradientInFloat64) {
  for (train::RunConfig config : {digits(), gpt()}) {
    config.model.dtype = "float64";
    // Weights of size 1 lose some of the gradient's digits when the step is subtracted: 1e-12
    // allows for that.
    for (const int workers : {1, 2, 3, 4, 8})
      EXPECT_LT(distance_of_first_gradient(config, {workers}), 1e-12) << workers;
  }
}

TEST(OracleB, FirstGradientInFloat32) {
  EXPECT_LT(distance_of_first_gradient(digits(), {3}), 1e-5);
}

/// DataParallel around a user's own loop, against the same loop in one process with the same
/// optimizer, Adam.
struct Net : torch::nn::Module {
  torch::nn::Linear a{nullptr}, b{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  Net() {
    a = register_module("a", torch::nn::Linear(6, 16));
    norm = register_module("norm", torch::nn::BatchNorm1d(16));
    b = register_module("b", torch::nn::Linear(16, 3));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return b->forward(torch::relu(norm->forward(a->forward(x))));
  }
};

std::string train_own_loop(int workers, comm::TransportKind transport, int steps_of_epochs) {
  tensor::set_up_worker(1);
  torch::manual_seed(11);
  const auto inputs = torch::randn({52, 6});
  const auto targets = torch::randint(0, 3, {52}, torch::kLong);
  std::mutex mutex;
  std::vector<std::string> hashes;
  run_threads(workers, [&](World world) {
    std::shared_ptr<Net> net;
    {
      std::lock_guard lock(mutex);
      torch::manual_seed(world.rank() == 0 ? 5 : 100 + world.rank());  // Rank 0's weights win.
      net = std::make_shared<Net>();
    }
    torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.01));
    DataParallel trainer(*net, optimizer, world,
                         {.global_batch = 20,
                          .micro_batch = 3,
                          .seed = 2,
                          .clip_norm = 0.5,
                          .bucket_bytes = 64,
                          .transport = transport});
    for (int epoch = 0; epoch < steps_of_epochs; ++epoch) {
      for (auto& micro : trainer.epoch(inputs.size(0))) {
        const auto index = torch::tensor(micro.indices());
        trainer.backward(torch::nn::functional::cross_entropy(
            net->forward(inputs.index_select(0, index)), targets.index_select(0, index)));
      }
    }
    EXPECT_EQ(trainer.step(), 3 * steps_of_epochs);
    std::lock_guard lock(mutex);
    hashes.push_back(trainer.parameters_sha256());
  });
  for (const auto& hash : hashes) EXPECT_EQ(hash, hashes.front());
  return hashes.front();
}

/// The plain loop beside DataParallel: same samples, same tree, the same torch::optim optimizer.
TEST(DataParallelLoop, EqualToThePlainLoopWithAdam) {
  tensor::set_up_worker(1);
  torch::manual_seed(11);
  const auto inputs = torch::randn({47, 6});
  const auto targets = torch::randint(0, 3, {47}, torch::kLong);
  const auto make = [] {
    torch::manual_seed(5);
    return torch::nn::Sequential(torch::nn::Linear(6, 16), torch::nn::Tanh(),
                                 torch::nn::Linear(16, 3));
  };
  const auto loss_of = [&](torch::nn::Sequential& net, const std::vector<std::int64_t>& indices) {
    const auto index = torch::tensor(indices);
    return torch::nn::functional::cross_entropy(net->forward(inputs.index_select(0, index)),
                                                targets.index_select(0, index));
  };

  auto plain = make();
  torch::optim::Adam adam(plain->parameters(), torch::optim::AdamOptions(0.01));
  const data::GlobalSampler sampler({.samples = 47, .batch = 20, .micro_batch = 3, .seed = 2});
  for (std::int64_t k = 0; k < 4 * sampler.steps_per_epoch(); ++k) {
    std::vector<Gradients> leaves;
    for (std::int64_t v = 0; v < sampler.micro_batches(k); ++v) {
      const auto indices = sampler.indices(k, v);
      (loss_of(plain, indices) * static_cast<double>(indices.size())).backward();
      leaves.push_back(take_gradients(*plain));
    }
    const Gradients sum = tree(leaves, 0, leaves.size());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      plain->parameters()[i].mutable_grad() =
          sum[i] / static_cast<double>(sampler.samples_of_step(k));
    }
    adam.step();
    take_gradients(*plain);
  }

  auto ours = make();
  torch::optim::Adam optimizer(ours->parameters(), torch::optim::AdamOptions(0.01));
  DataParallel trainer(*ours, optimizer, World::of_threads(1).front(),
                       {.global_batch = 20, .micro_batch = 3, .seed = 2});
  for (int epoch = 0; epoch < 4; ++epoch) {
    for (auto& micro : trainer.epoch(47)) trainer.backward(loss_of(ours, micro.indices()));
  }
  for (std::size_t i = 0; i < plain->parameters().size(); ++i) {
    EXPECT_TRUE(torch::equal(plain->parameters()[i], ours->parameters()[i])) << i;
  }
}

TEST(DataParallelLoop, RefusesWhatCannotBeRight) {
  torch::nn::Linear net(2, 2);
  torch::nn::Linear stranger(2, 2);
  const World alone = World::of_threads(1).front();
  torch::optim::LBFGS lbfgs(net->parameters());
  EXPECT_THROW(DataParallel(*net, lbfgs, alone, {.global_batch = 4}), ConfigError);
  torch::optim::SGD other(stranger->parameters(), 0.1);
  EXPECT_THROW(DataParallel(*net, other, alone, {.global_batch = 4}), ConfigError);
  torch::optim::SGD doubled(std::vector<torch::Tensor>{net->weight, net->bias, net->weight}, 0.1);
  EXPECT_THROW(DataParallel(*net, doubled, alone, {.global_batch = 4}), ConfigError);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  EXPECT_THROW(DataParallel(*net, sgd, alone, {}), ConfigError);
  EXPECT_THROW(DataParallel(*net, sgd, alone, {.global_batch = 4, .micro_batch = 8}), ConfigError);
  run_threads(2, [](World world) {
    torch::nn::Sequential with_dropout(torch::nn::Linear(2, 2), torch::nn::Dropout(0.5));
    torch::optim::SGD optimizer(with_dropout->parameters(), 0.1);
    EXPECT_THROW(DataParallel(*with_dropout, optimizer, world, {.global_batch = 4}), ConfigError);
  });
}

TEST(DataParallelLoop, RanksWithOtherOptionsAreRefusedAlsoIfMixed) {
  tensor::set_up_worker(1);
  auto join = [](World world, bool mixed) {
    torch::nn::Linear net(2, 1);
    torch::optim::SGD sgd(net->parameters(), 0.1);
    const double clip_norm = world.rank() == 1 ? 0.5 : 1.0;
    DataParallel(*net, sgd, world, {.global_batch = 4, .clip_norm = clip_norm, .mixed = mixed});
  };
  run_threads(3, [&](World world) { EXPECT_THROW(join(world, false), JoinRefused); });
  run_threads(3, [&](World world) { EXPECT_THROW(join(world, true), JoinRefused); });
}

TEST(DataParallelLoop, AMicroBatchWithoutBackwardIsAnError) {
  torch::nn::Linear net(2, 1);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  DataParallel trainer(*net, sgd, World::of_threads(1).front(),
                       {.global_batch = 4, .micro_batch = 2});
  EXPECT_THROW(
      {
        for ([[maybe_unused]] auto& micro : trainer.epoch(8)) {
        }
      },
      ConfigError);
  EXPECT_THROW(trainer.epoch(9), ConfigError);
}

TEST(DataParallelLoop, SameBitsForAnyNumberOfRanks) {
  const std::string alone = train_own_loop(1, comm::TransportKind::kSharedMemory, 5);
  for (const int workers : {2, 3, 4, 9}) {
    EXPECT_EQ(train_own_loop(workers, comm::TransportKind::kSharedMemory, 5), alone) << workers;
  }
  EXPECT_EQ(train_own_loop(3, comm::TransportKind::kTcp, 5), alone);
  EXPECT_NE(train_own_loop(1, comm::TransportKind::kSharedMemory, 4), alone);
}

}  // namespace
}  // namespace yoke::test
