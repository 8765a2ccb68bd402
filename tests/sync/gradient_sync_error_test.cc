// What cannot be right ends in an error that says so, on every rank that can know, and changes
// nothing.

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <array>
#include <cmath>
#include <limits>

#include "tests/support/spawn_ranks.h"
#include "yoke/base/error.h"
#include "yoke/sync/flat_state.h"
#include "yoke/sync/gradient_sync.h"
#include "yoke/tensor/bridge.h"

namespace yoke::sync {
namespace {

using comm::TransportKind;
using testing::AllOf;
using testing::HasSubstr;

/// y = sum(weight) * x, with a buffer of each kind that every micro-batch changes.
struct Line : torch::nn::Module {
  Line() {
    weight = register_parameter("weight", torch::linspace(1, 2, 3000));
    unused = register_parameter("unused", torch::ones({3}));
    seen = register_buffer("seen", torch::zeros({}, torch::kLong));
    average = register_buffer("average", torch::zeros({2}));
  }
  torch::Tensor loss(double x, std::int64_t seen_becomes = 1) {
    torch::NoGradGuard no_grad;
    seen.fill_(seen_becomes);
    average.add_(x);
    torch::AutoGradMode grad(true);
    return weight.sum() * x;
  }
  torch::Tensor weight, unused, seen, average;
};

/// One rank with all that it takes.
struct Rank {
  explicit Rank(const World& world, TransportKind transport = TransportKind::kSharedMemory,
                std::int64_t leaf = 1)
      : communicator(comm::Communicator::create(
            world, {.transport = transport, .timeout = std::chrono::seconds(5)})),
        gradients(line, *communicator, {.most_micro_batches = 8, .leaf = leaf}),
        state(gradients, *communicator, optim::Optimizer::make({.name = "adam"})) {}

  void compute(std::int64_t v, double x, std::int64_t seen_becomes = 1) {
    gradients.begin_micro_batch(v);
    gradients.backward(line.loss(x, seen_becomes), 2);
  }
  std::vector<std::byte> bits() {
    std::vector<std::byte> all;
    for (const auto& tensors :
         {state.parameters(), state.optimizer(), gradients.buffers().named()}) {
      for (const auto& [name, tensor] : tensors)
        all.insert(all.end(), tensor.bytes.begin(), tensor.bytes.end());
    }
    return all;
  }

  Line line;
  std::unique_ptr<comm::Communicator> communicator;
  GradientSync gradients;
  FlatState state;
  FaultPlan faults;
};

/// The message of the E that `call` throws; anything else fails the test.
template <typename E>
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another error: " << error.what();
    return "";
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(GradientSyncErrors, AGradientThatIsNotFiniteChangesNothingOnAnyRank) {
  for (const auto transport : {TransportKind::kSharedMemory, TransportKind::kTcp}) {
    for (const std::int64_t culprit : {0, 1, 3}) {  // with two ranks, on each of them
      for (const double bad :
           {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
        test::run_threads(2, [&](World world) {
          Rank rank(world, transport);
          const auto before = rank.bits();
          for (std::int64_t step = 0; step < 2; ++step) {
            rank.gradients.begin_step(step, 4);
            const auto mine = rank.gradients.my_micro_batches();
            for (const std::int64_t v : mine)
              rank.compute(v, step == 0 && v == culprit ? bad : 0.5);
            if (step == 1) break;
            EXPECT_THAT(message_of<DataError>([&] { rank.gradients.finish({}, rank.faults); }),
                        AllOf(HasSubstr("step 0"), HasSubstr("not finite")));
            EXPECT_EQ(rank.bits(), before);
            EXPECT_EQ(rank.line.seen.item<std::int64_t>(), 0) << "the module has the old buffers";
            EXPECT_EQ(rank.line.average[0].item<float>(), 0.0F);
            rank.communicator->barrier();
          }
          // The next step is as if nothing had been.
          rank.gradients.finish({}, rank.faults);
          rank.state.update(1, 0.1, 1.0, rank.faults);
          EXPECT_NE(rank.bits(), before);
          EXPECT_EQ(rank.line.average[0].item<float>(), 0.5F);
          rank.communicator->barrier();
        });
      }
    }
  }
}

TEST(GradientSyncErrors, AnIntegerBufferThatDiffersOnOneRankIsItsErrorAndNobodyHangs) {
  for (const auto transport : {TransportKind::kSharedMemory, TransportKind::kTcp}) {
    test::run_threads(2, [&](World world) {
      Rank rank(world, transport);
      rank.gradients.begin_step(0, 4);
      if (world.rank() == 0) {
        rank.compute(0, 0.5, 5);
        EXPECT_THAT(message_of<DataError>([&] { rank.compute(1, 0.5, 6); }),
                    AllOf(HasSubstr("seen"), HasSubstr("two micro-batches of this rank")));
      } else {
        rank.compute(2, 0.5, 5);
        rank.compute(3, 0.5, 5);
        message_of<CommunicationError>([&] { rank.gradients.finish({}, rank.faults); });
      }
    });
  }
}

TEST(GradientSyncErrors, AnIntegerBufferThatDiffersBetweenRanksIsAnErrorOfBoth) {
  for (const auto transport : {TransportKind::kSharedMemory, TransportKind::kTcp}) {
    test::run_threads(3, [&](World world) {
      Rank rank(world, transport);
      const auto before = rank.bits();
      rank.gradients.begin_step(0, 3);
      rank.compute(world.rank(), 0.5, world.rank() == 2 ? 7 : 5);
      EXPECT_THAT(message_of<DataError>([&] { rank.gradients.finish({}, rank.faults); }),
                  AllOf(HasSubstr("seen"), HasSubstr("rank 0 and rank 2")));
      EXPECT_EQ(rank.bits(), before);
      EXPECT_EQ(rank.line.average[0].item<float>(), 0.0F);
      rank.communicator->barrier();
    });
  }
}

TEST(GradientSyncErrors, BackwardIsCalledOnceForEachMicroBatch) {
  test::run_threads(1, [](World world) {
    Rank rank(world);
    rank.gradients.begin_step(0, 2);
    EXPECT_THAT(message_of<ConfigError>([&] { rank.gradients.backward(rank.line.loss(1), 2); }),
                HasSubstr("without a micro-batch"));
    rank.compute(0, 0.5);
    EXPECT_THAT(message_of<ConfigError>([&] { rank.gradients.backward(rank.line.loss(1), 2); }),
                HasSubstr("twice"));
    rank.gradients.begin_micro_batch(1);
    EXPECT_THAT(message_of<ConfigError>([&] { rank.gradients.finish({}, rank.faults); }),
                AllOf(HasSubstr("1 of the 2"), HasSubstr("backward()")));
    EXPECT_THROW(rank.gradients.backward(torch::ones({2}), 2), ConfigError);
    EXPECT_THROW(rank.gradients.backward({}, 2), ConfigError);
    EXPECT_THROW(rank.gradients.backward(rank.line.loss(1), 0), ConfigError);
    rank.gradients.backward(rank.line.loss(0.5), 2);
    EXPECT_EQ(rank.gradients.finish({}, rank.faults).weight, 4);
  });
}

TEST(GradientSyncErrors, AStepThatWasGivenUpLeavesNothingBehind) {
  std::array<std::vector<std::byte>, 2> bits;
  for (const bool gives_up : {false, true}) {
    test::run_threads(1, [&](World world) {
      Rank rank(world, TransportKind::kSharedMemory, 3);
      if (gives_up) {
        rank.gradients.begin_step(0, 6);
        for (const std::int64_t v : {0, 1, 2, 3}) rank.compute(v, 17.0);
      }
      rank.gradients.begin_step(0, 6);
      for (std::int64_t v = 0; v < 6; ++v) rank.compute(v, 0.25 * static_cast<double>(v));
      rank.gradients.finish({}, rank.faults);
      rank.state.update(0, 0.1, 1.0, rank.faults);
      bits[gives_up ? 1 : 0] = rank.bits();
    });
  }
  EXPECT_TRUE(bits[0] == bits[1]);
}

TEST(GradientSyncErrors, ABackwardOfTheUsersOwnIsNotCollected) {
  test::run_threads(1, [](World world) {
    Rank rank(world);
    rank.gradients.begin_step(0, 1);
    rank.gradients.begin_micro_batch(0);
    rank.line.loss(100).backward();
    EXPECT_EQ(rank.line.weight.grad()[0].item<float>(), 100.0F);
    rank.line.weight.mutable_grad().reset();
    rank.gradients.backward(rank.line.loss(0.5), 2);
    EXPECT_FALSE(rank.line.weight.grad().defined()) << "yoke takes the gradient away";
    const auto outcome = rank.gradients.finish({}, rank.faults);
    EXPECT_NEAR(outcome.norm, 0.5 * std::sqrt(3000.0), 1e-9);
    EXPECT_TRUE(rank.gradients.present(0));
    EXPECT_FALSE(rank.gradients.present(1));
  });
}

TEST(GradientSyncErrors, ASparseGradientIsRefused) {
  test::run_threads(1, [](World world) {
    auto communicator = comm::Communicator::create(world);
    torch::nn::Embedding embedding(torch::nn::EmbeddingOptions(10, 4).sparse(true));
    GradientSync gradients(*embedding, *communicator, {});
    gradients.begin_step(0, 1);
    gradients.begin_micro_batch(0);
    const auto loss = embedding->forward(torch::tensor({1, 2}, torch::kLong)).sum();
    EXPECT_THAT(message_of<ConfigError>([&] { gradients.backward(loss, 1); }),
                AllOf(HasSubstr("weight"), HasSubstr("sparse")));
  });
}

TEST(ModelTensors, WhatYokeCannotTrainIsRefusedByName) {
  const auto refused = [](torch::nn::Module& module) {
    return message_of<ConfigError>([&] { ModelTensors tensors(module); });
  };
  torch::nn::Module module;
  EXPECT_THAT(refused(module), HasSubstr("nothing to train"));
  module.register_parameter("half", torch::ones({2}, torch::kHalf));
  EXPECT_THAT(refused(module), AllOf(HasSubstr("half"), HasSubstr("float16")));
  torch::nn::Module shared;
  shared.register_parameter("weight", torch::ones({2}));
  const auto tensor = shared.register_buffer("one", torch::ones({2}));
  shared.register_buffer("other", tensor);
  EXPECT_THAT(refused(shared), AllOf(HasSubstr("one"), HasSubstr("other")));
  torch::nn::Module complex;
  complex.register_parameter("z", torch::ones({2}, torch::kComplexFloat));
  EXPECT_THAT(refused(complex), AllOf(HasSubstr("z"), HasSubstr("ComplexFloat")));
}

TEST(ModelTensors, AParameterUnderTwoNamesHasTheFirst) {
  torch::nn::Module module;
  const auto tensor = module.register_parameter("one", torch::ones({2}));
  module.register_parameter("other", tensor);
  const ModelTensors tensors(module);
  ASSERT_EQ(tensors.trainable.size(), 1u);
  EXPECT_EQ(tensors.trainable[0].name, "one");
  EXPECT_TRUE(tensors.tied.empty()) << "a plain module is a list of one layer";
}

}  // namespace
}  // namespace yoke::sync
