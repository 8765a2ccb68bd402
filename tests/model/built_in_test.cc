#include <gtest/gtest.h>

#include "models.h"

namespace yoke::model {
namespace {

TEST(BuiltIn, GiveOneScoreAClass) {
  for (const auto& c : small_cases()) {
    for (std::int64_t count : {1, 6}) {
      auto output = make(c)->forward(samples(c.shape, count).input, {.key = RandomKey(1)});
      std::vector<std::int64_t> expected{count, c.shape.classes};
      if (c.shape.tokens) expected = {count, c.shape.input[0], c.shape.classes};
      EXPECT_EQ(output.sizes(), at::IntArrayRef(expected)) << c.options.name;
    }
  }
}

TEST(BuiltIn, EveryParameterGetsAFiniteGradient) {
  for (const char* dtype : {"float32", "float64"}) {
    for (const auto& c : small_cases(dtype, 0.1)) {
      auto model = make(c);
      gradient(*model, samples(c.shape, 6), {.key = RandomKey(1)});
      for (const auto& item : model->named_parameters()) {
        auto grad = item.value().grad();
        ASSERT_TRUE(grad.defined()) << c.options.name << " " << item.key();
        EXPECT_TRUE(grad.isfinite().all().item<bool>()) << c.options.name << " " << item.key();
        EXPECT_GT(grad.abs().max().item<double>(), 0.0) << c.options.name << " " << item.key();
        EXPECT_TRUE(item.value().is_contiguous()) << item.key();
      }
    }
  }
}

TEST(BuiltIn, Float64ModelsAreFloat64ThroughoutAndAgreeWithFloat32) {
  auto singles = small_cases("float32", 0.2), doubles = small_cases("float64", 0.2);
  for (std::size_t i = 0; i < singles.size(); ++i) {
    auto single = make(singles[i]), twice = make(doubles[i]);
    auto batch = samples(singles[i].shape, 5);
    StepContext context{.key = RandomKey(3)};
    auto narrow = single->forward(batch.input, context),
         wide = twice->forward(batch.input, context);
    EXPECT_EQ(wide.scalar_type(), torch::kDouble);
    for (const auto& parameter : twice->parameters())
      EXPECT_EQ(parameter.scalar_type(), torch::kDouble);
    for (const auto& item : twice->named_buffers()) {
      bool counts = item.key().find("num_batches") != std::string::npos;
      EXPECT_EQ(item.value().scalar_type(), counts ? torch::kLong : torch::kDouble) << item.key();
    }
    EXPECT_LT((narrow - wide).norm().item<double>(), 1e-5 * wide.norm().item<double>())
        << singles[i].options.name;
  }
}

TEST(BuiltIn, SameKeySameBits) {
  for (const auto& c : small_cases()) {
    auto batch = samples(c.shape, 6);
    auto one = make(c), two = make(c);
    torch::manual_seed(1);
    auto first = gradient(*one, batch, {.key = RandomKey(7)});
    torch::manual_seed(2);
    auto again = gradient(*one, batch, {.key = RandomKey(7)});
    auto elsewhere = gradient(*two, batch, {.key = RandomKey(7)});
    EXPECT_TRUE(first.equal(again)) << c.options.name;
    EXPECT_TRUE(first.equal(elsewhere)) << c.options.name;
    auto other = gradient(*two, batch, {.key = RandomKey(8)});
    EXPECT_FALSE(first.equal(other)) << c.options.name << ": another micro-batch has another mask";
  }
}

TEST(BuiltIn, EvaluationDropsNothingAndChangesNoBuffer) {
  for (const auto& c : small_cases()) {
    auto model = make(c);
    auto input = samples(c.shape, 6).input;
    model->forward(input, {.key = RandomKey(1)});
    auto before = flat(model->buffers().empty() ? model->parameters() : model->buffers());
    auto one = model->forward(input, {.key = RandomKey(1), .training = false});
    auto two = model->forward(input, {.key = RandomKey(2), .training = false});
    EXPECT_TRUE(one.equal(two)) << c.options.name;
    EXPECT_TRUE(
        before.equal(flat(model->buffers().empty() ? model->parameters() : model->buffers())));
    auto alone = model->forward(input.narrow(0, 2, 1), {.training = false});
    EXPECT_LT((alone[0] - one[2]).abs().max().item<double>(), 1e-5)
        << "a sample does not see its neighbours";
  }
}

TEST(BuiltIn, TheCnnEqualsItsLayersInTorch) {
  Case c{{.name = "cnn", .dtype = "float64", .channels = 4}, {.input = {2, 11, 8}, .classes = 5}};
  auto model = make(c);
  auto at = [&](const char* name) { return model->named_parameters()[name]; };
  torch::nn::BatchNorm2d norm1(4), norm2(8);
  norm1->to(torch::kDouble);
  norm2->to(torch::kDouble);
  auto input = samples(c.shape, 7).input;
  auto x = input.to(torch::kDouble);
  x = torch::relu(norm1(torch::conv2d(x, at("conv1.weight"), {}, 1, 1)));
  x = torch::relu(norm2(torch::conv2d(torch::max_pool2d(x, 2), at("conv2.weight"), {}, 1, 1)));
  x = torch::max_pool2d(x, 2).flatten(1);
  auto expected = torch::linear(x, at("output.weight"), at("output.bias"));
  auto output = model->forward(input, {.key = RandomKey(1)});
  EXPECT_LT((output - expected).abs().max().item<double>(), 1e-12);
  auto buffers = model->named_buffers();
  EXPECT_LT((buffers["norm1.running_mean"] - norm1->running_mean).abs().max().item<double>(),
            1e-14);
  EXPECT_LT((buffers["norm2.running_var"] - norm2->running_var).abs().max().item<double>(), 1e-14);
  EXPECT_EQ(buffers["norm2.num_batches_tracked"].item<std::int64_t>(), 1);
}

TEST(BuiltIn, TheMlpEqualsItsFormula) {
  Case c{{.name = "mlp", .dtype = "float64", .hidden = 6, .depth = 2},
         {.input = {2, 2}, .classes = 3}};
  auto model = make(c);
  auto at = [&](const std::string& name) { return model->named_parameters()[name]; };
  auto input = samples(c.shape, 4).input;
  auto x = input.to(torch::kDouble).view({4, 4});
  for (std::string name : {"hidden1", "hidden2"}) {
    x = torch::relu(torch::matmul(x, at(name + ".weight").t()) + at(name + ".bias"));
  }
  auto expected = torch::matmul(x, at("output.weight").t()) + at("output.bias");
  EXPECT_LT((model->forward(input, {}) - expected).abs().max().item<double>(), 1e-14);
  EXPECT_EQ(model->parameters().size(), 6u);
}

}  // namespace
}  // namespace yoke::model
