#include "yoke/model/initial_weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models.h"

namespace yoke::model {
namespace {

TEST(InitialWeights, DoNotDependOnTheProcessGeneratorNorMoveIt) {
  for (const auto& c : small_cases()) {
    torch::manual_seed(1);
    auto one = flat(make(c)->parameters());
    torch::manual_seed(2);
    auto expected_next = torch::rand({3});
    torch::manual_seed(2);
    auto two = flat(make(c)->parameters());
    EXPECT_TRUE(torch::rand({3}).equal(expected_next))
        << c.options.name << " draws from the process generator";
    EXPECT_TRUE(one.equal(two)) << c.options.name;
    EXPECT_FALSE(one.equal(flat(make(c, 2)->parameters())))
        << c.options.name << " ignores the seed";
  }
}

TEST(InitialWeights, OfOneLayerDoNotDependOnOthers) {
  Case shallow{{.name = "mlp", .hidden = 8, .depth = 1}, {.input = {8}, .classes = 3}};
  auto deep = shallow;
  deep.options.depth = 3;
  deep.options.dropout = 0.5;
  auto small = make(shallow)->named_parameters(), large = make(deep)->named_parameters();
  for (const auto& item : small) EXPECT_TRUE(item.value().equal(large[item.key()])) << item.key();
  EXPECT_FALSE(large["hidden1.weight"].equal(large["hidden2.weight"]));
}

TEST(InitialWeights, HaveTheDistributionsOfTheirLayers) {
  Case c{{.name = "mlp", .hidden = 200, .depth = 1}, {.input = {100}, .classes = 200}};
  auto parameters = make(c)->named_parameters();
  auto weight = parameters["hidden1.weight"].detach();
  EXPECT_LE(weight.abs().max().item<double>(), 0.1 + 1e-7);
  EXPECT_GT(weight.abs().max().item<double>(), 0.0999);
  EXPECT_NEAR(weight.mean().item<double>(), 0.0, 0.002);
  EXPECT_NEAR(weight.std().item<double>(), 0.1 / std::sqrt(3.0), 0.001);
  EXPECT_LE(parameters["output.bias"].abs().max().item<double>(), 1 / std::sqrt(200.0));

  Case text{{.name = "gpt", .depth = 2, .width = 64, .heads = 4},
            {.input = {32}, .classes = 50, .tokens = true}};
  parameters = make(text)->named_parameters();
  for (const char* name : {"embedding.token", "embedding.position", "block1.qkv_weight",
                           "block2.up_weight", "head.weight"}) {
    EXPECT_NEAR(parameters[name].std().item<double>(), 0.02, 0.001) << name;
    EXPECT_NEAR(parameters[name].mean().item<double>(), 0.0, 0.002) << name;
  }
  for (const char* name : {"block1.out_weight", "block2.down_weight"}) {
    EXPECT_NEAR(parameters[name].std().item<double>(), 0.01, 0.0005) << name;
  }
  EXPECT_TRUE(parameters["block1.norm1_weight"].eq(1).all().item<bool>());
  EXPECT_TRUE(parameters["block1.qkv_bias"].eq(0).all().item<bool>());
}

TEST(InitialWeights, AreDrawnForEachElementByItself) {
  auto shorter = torch::zeros({3, 5}), longer = torch::zeros({7, 5});
  fill_normal(shorter, RandomKey(3), 2.0);
  fill_normal(longer, RandomKey(3), 2.0);
  EXPECT_TRUE(longer.narrow(0, 0, 3).equal(shorter));
  fill_uniform(shorter, RandomKey(3), 2.0);
  fill_uniform(longer, RandomKey(3), 2.0);
  EXPECT_TRUE(longer.narrow(0, 0, 3).equal(shorter));
}

}  // namespace
}  // namespace yoke::model
