#include "yoke/model/layer_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>

#include "yoke/base/error.h"
#include "yoke/model/dropout.h"
#include "yoke/model/linear.h"

namespace yoke::model {
namespace {

TEST(LayerList, NamesParametersAndPaths) {
  LayerList list;
  list.add("first", std::make_shared<Linear>(2, 3)).add("second", std::make_shared<Linear>(3, 1));
  EXPECT_EQ(list.layers()[1]->path(), "layers.1");
  EXPECT_THAT(list.named_parameters().keys(),
              testing::ElementsAre("first.weight", "first.bias", "second.weight", "second.bias"));
  EXPECT_FALSE(list.uses_process_generator());
}

/// Hands on a transposed view, and notes how its input lies.
class Transpose : public Layer {
 public:
  torch::Tensor forward(const torch::Tensor& input, const StepContext&) override {
    contiguous_ = contiguous_ && input.is_contiguous();
    return input.t();
  }
  bool contiguous_ = true;
};

TEST(LayerList, TensorsBetweenLayersAreContiguous) {
  LayerList list;
  auto first = std::make_shared<Transpose>(), second = std::make_shared<Transpose>();
  list.add("first", first).add("second", second);
  list.forward(torch::rand({3, 2}).t(), {});
  EXPECT_TRUE(first->contiguous_);
  EXPECT_TRUE(second->contiguous_);
}

TEST(LayerList, ALayerAddedTwiceIsOneLayerCalledTwice) {
  auto layer = std::make_shared<Linear>(2, 2);
  auto list = std::make_shared<LayerList>();
  list->add("shared", layer).add("again", layer);
  list->initialize(1);
  EXPECT_EQ(list->layers().size(), 2u);
  EXPECT_THAT(list->named_parameters().keys(),
              testing::ElementsAre("shared.weight", "shared.bias"));
  auto input = torch::rand({3, 2});
  EXPECT_TRUE(list->forward(input, {}).equal(layer->forward(layer->forward(input, {}), {})));
}

TEST(LayerList, SeparateUsesShowTheGradientOfEach) {
  auto layer = std::make_shared<Linear>(2, 2);
  auto other = std::make_shared<Linear>(2, 2);
  LayerList list;
  list.add("shared", layer).add("other", other).add("again", layer);
  list.initialize(1);
  for (auto& parameter : list.parameters()) parameter.set_data(parameter.to(torch::kDouble));
  const auto tied = list.tied();
  ASSERT_EQ(tied.size(), 2u) << "weight and bias";
  EXPECT_THAT(tied[0].entries, testing::ElementsAre(0, 2));

  auto weight = layer->named_parameters()["weight"];
  const auto input = torch::rand({3, 2}, torch::kDouble).requires_grad_();
  const auto loss = [&] { return list.forward(input, {}).square().sum(); };
  const auto whole = torch::autograd::grad({loss()}, {weight, input});

  std::map<std::size_t, torch::Tensor> uses;
  const auto hook = weight.register_hook([&](const torch::Tensor& gradient) {
    uses[list.differentiating().value_or(99)] = gradient.clone();
  });
  list.separate_uses(true);
  loss().backward();
  EXPECT_FALSE(list.differentiating().has_value());
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_TRUE(uses.contains(0) && uses.contains(2));
  EXPECT_TRUE(torch::allclose(uses[0] + uses[2], whole[0], 1e-12, 1e-14));
  EXPECT_FALSE(torch::allclose(uses[0], uses[2]));
  EXPECT_TRUE(torch::equal(input.grad(), whole[1]));
  EXPECT_TRUE(other->named_parameters()["weight"].grad().defined());

  uses.clear();
  list.separate_uses(false);
  loss().backward();
  EXPECT_EQ(uses.size(), 1u);
  weight.remove_hook(hook);
}

TEST(LayerList, ADropoutCalledTwiceDrawsTwoMasks) {
  auto layer = std::make_shared<Dropout>(0.5);
  LayerList twice;
  twice.add("drop", layer).add("again", layer);
  auto kept =
      twice.forward(torch::ones({10'000}), {.key = RandomKey(1)}).ne(0).to(torch::kDouble).mean();
  EXPECT_NEAR(kept.item<double>(), 0.25, 0.02) << "one mask twice would keep a half";
}

TEST(LayerList, ALayerBelongsToOneList) {
  auto layer = std::make_shared<Dropout>(0.5);
  LayerList one, two;
  one.add("drop", layer);
  EXPECT_THROW(two.add("drop", layer), InternalError);
  EXPECT_THROW(one.add("null", nullptr), InternalError);
}

TEST(Dropout, KeepsTheExpectation) {
  for (auto dtype : {torch::kFloat32, torch::kFloat64}) {
    for (double p : {0.1, 0.5, 0.9}) {
      auto output = dropout(torch::ones({200, 1000}, dtype), p, RandomKey(9));
      EXPECT_EQ(output.scalar_type(), dtype);
      EXPECT_NEAR(output.mean().item<double>(), 1.0, 0.03) << p;
      EXPECT_NEAR(output.eq(0).to(torch::kDouble).mean().item<double>(), p, 0.01);
      auto kept = output.masked_select(output.ne(0));
      EXPECT_NEAR(kept.min().item<double>() * (1 - p), 1.0,
                  dtype == torch::kFloat32 ? 1e-6 : 1e-15);
      EXPECT_TRUE(kept.eq(kept[0]).all().item<bool>());
    }
  }
}

TEST(Dropout, TheGradientHasTheMaskOfTheOutput) {
  auto input = torch::ones({1000}).requires_grad_(true);
  auto output = dropout(input, 0.3, RandomKey(2));
  output.sum().backward();
  EXPECT_TRUE(input.grad().equal(output.detach()));
}

TEST(Dropout, LayersAndMicroBatchesHaveMasksOfTheirOwn) {
  LayerList list;
  list.add("one", std::make_shared<Dropout>(0.5)).add("two", std::make_shared<Dropout>(0.5));
  auto ones = torch::ones({1000});
  auto mask = [&](std::size_t layer, std::uint64_t key) {
    return list.layers()[layer]->forward(ones, {.key = RandomKey(key)});
  };
  EXPECT_TRUE(mask(0, 1).equal(mask(0, 1)));
  EXPECT_FALSE(mask(0, 1).equal(mask(1, 1)));
  EXPECT_FALSE(mask(0, 1).equal(mask(0, 2)));
  EXPECT_TRUE(list.layers()[0]->forward(ones, {.training = false}).equal(ones));
}

/// A user's module with two dropouts of libtorch's own.
struct UserNet : torch::nn::Module {
  torch::nn::Linear linear{register_module("linear", torch::nn::Linear(4, 4))};
  torch::nn::Dropout drop{register_module("drop", torch::nn::Dropout(0.5))};
  torch::Tensor forward(const torch::Tensor& input) { return drop(linear(drop(input))); }
};

TEST(ModuleLayer, IsReproducibleWithTorchsDropout) {
  LayerList list;
  list.add("net", std::make_shared<ModuleLayer<UserNet>>(std::make_shared<UserNet>()));
  EXPECT_TRUE(list.uses_process_generator());
  auto input = torch::ones({8, 4});
  torch::manual_seed(1);
  auto first = list.forward(input, {.key = RandomKey(1)});
  torch::rand({17});
  auto again = list.forward(input, {.key = RandomKey(1)});
  EXPECT_TRUE(first.equal(again));
  EXPECT_FALSE(first.equal(list.forward(input, {.key = RandomKey(2)})));
  EXPECT_THAT(list.named_parameters().keys(),
              testing::ElementsAre("net.module.linear.weight", "net.module.linear.bias"));
}

TEST(ModuleLayer, KnowsWhetherItTrains) {
  auto net = std::make_shared<UserNet>();
  LayerList list;
  list.add("net", std::make_shared<ModuleLayer<UserNet>>(net));
  auto input = torch::ones({8, 4});
  EXPECT_TRUE(list.forward(input, {.training = false}).equal(net->linear(input)));
  EXPECT_FALSE(net->is_training());
  list.forward(input, {.training = true});
  EXPECT_TRUE(net->drop->is_training());
}

}  // namespace
}  // namespace yoke::model
