#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models.h"
#include "yoke/base/error.h"

namespace yoke::model {
namespace {

Case tiny(double dropout = 0.0, const std::string& dtype = "float64") {
  return {{.name = "gpt", .dtype = dtype, .depth = 2, .width = 12, .heads = 3, .dropout = dropout},
          {.input = {10}, .classes = 7, .tokens = true}};
}

TEST(Gpt, LaterTokensDoNotChangeEarlierOutputs) {
  auto c = tiny();
  auto model = make(c);
  auto input = samples(c.shape, 3).input;
  auto output = model->forward(input, {.training = false});
  for (std::int64_t changed = 1; changed < 10; ++changed) {
    auto other = input.clone();
    other.select(1, changed).add_(1).remainder_(7);
    auto moved = model->forward(other, {.training = false});
    EXPECT_TRUE(moved.narrow(1, 0, changed).equal(output.narrow(1, 0, changed)))
        << "token " << changed;
    EXPECT_FALSE(moved.select(1, changed).equal(output.select(1, changed))) << "token " << changed;
    EXPECT_FALSE(moved.select(1, 9).equal(output.select(1, 9)))
        << "the last position sees token " << changed;
  }
}

/// The model by its formulas, head by head, with an explicit mask.
torch::Tensor by_formula(LayerList& model, const torch::Tensor& input, std::int64_t heads) {
  auto at = [&](const std::string& name) { return model.named_parameters()[name]; };
  auto norm = [](const torch::Tensor& x, const torch::Tensor& w, const torch::Tensor& b) {
    auto centred = x - x.mean(-1, true);
    return centred / (centred.square().mean(-1, true) + 1e-5).sqrt() * w + b;
  };
  auto gelu = [](const torch::Tensor& x) { return 0.5 * x * (1 + torch::erf(x / std::sqrt(2.0))); };
  std::int64_t length = input.size(1), width = at("embedding.token").size(1), size = width / heads;
  auto x = at("embedding.token").index({input}) + at("embedding.position").narrow(0, 0, length);
  auto hidden = torch::ones({length, length}, torch::kBool).triu(1);
  for (std::string block : {"block1.", "block2."}) {
    auto y = norm(x, at(block + "norm1_weight"), at(block + "norm1_bias"));
    auto qkv = torch::matmul(y, at(block + "qkv_weight").t()) + at(block + "qkv_bias");
    std::vector<torch::Tensor> mixed;
    for (std::int64_t head = 0; head < heads; ++head) {
      auto part = [&](std::int64_t which) {
        return qkv.narrow(2, which * width + head * size, size);
      };
      auto scores =
          torch::matmul(part(0), part(1).transpose(1, 2)) / std::sqrt(static_cast<double>(size));
      mixed.push_back(torch::matmul(scores.masked_fill(hidden, -INFINITY).softmax(-1), part(2)));
    }
    x = x + torch::matmul(torch::cat(mixed, 2), at(block + "out_weight").t()) +
        at(block + "out_bias");
    y = norm(x, at(block + "norm2_weight"), at(block + "norm2_bias"));
    y = gelu(torch::matmul(y, at(block + "up_weight").t()) + at(block + "up_bias"));
    x = x + torch::matmul(y, at(block + "down_weight").t()) + at(block + "down_bias");
  }
  return torch::matmul(norm(x, at("head.norm_weight"), at("head.norm_bias")),
                       at("head.weight").t());
}

TEST(Gpt, EqualsItsFormulas) {
  auto c = tiny();
  auto model = make(c);
  {
    // Away from the start, where biases are 0 and norms 1.
    torch::NoGradGuard no_grad;
    std::uint64_t i = 0;
    for (auto& parameter : model->parameters()) {
      auto noise = torch::empty(parameter.sizes(), torch::kDouble);
      RandomKey(++i).normal(
          std::span<double>(noise.data_ptr<double>(), static_cast<std::size_t>(noise.numel())));
      parameter.add_(noise, 0.3);
    }
  }
  auto input = samples(c.shape, 3).input;
  auto expected = by_formula(*model, input, 3);
  auto output = model->forward(input, {.key = RandomKey(1)});
  EXPECT_LT((output - expected).abs().max().item<double>(),
            1e-12 * expected.abs().max().item<double>());
}

TEST(Gpt, DropoutHitsEveryPlaceWithAMaskOfItsOwn) {
  auto c = tiny(0.5);
  auto model = make(c);
  auto input = samples(c.shape, 2).input;
  auto x = model->layers()[0]->forward(input, {.key = RandomKey(4)});
  EXPECT_NEAR((x == 0).to(torch::kDouble).mean().item<double>(), 0.5, 0.15);
  auto block = model->layers()[1];
  auto vectors = x.detach() + 0.1;
  auto first = block->forward(vectors, {.key = RandomKey(4)});
  auto second = block->forward(vectors, {.key = RandomKey(5)});
  EXPECT_FALSE(first.equal(second));
}

TEST(Gpt, RefusesATextLongerThanItWasMadeFor) {
  auto model = make(tiny());
  EXPECT_THROW(model->forward(torch::zeros({1, 11}, torch::kLong), {}), ConfigError);
  EXPECT_EQ(model->forward(torch::zeros({1, 4}, torch::kLong), {}).size(1), 4);
}

/// A text of three characters, enough to sample from.
class Letters : public data::Dataset {
 public:
  std::int64_t size() const override { return 1; }
  data::Shape shape() const override { return {.input = {4}, .classes = 3, .tokens = true}; }
  data::Batch get(std::span<const std::int64_t>) const override { throw InternalError("not read"); }
  std::string identity() const override { return "letters"; }
  std::string decode(std::span<const std::int64_t> tokens) const override {
    std::string text;
    for (auto token : tokens) text += static_cast<char>('a' + token);
    return text;
  }
  std::vector<std::int64_t> encode(const std::string& text) const override {
    std::vector<std::int64_t> tokens;
    for (char c : text) tokens.push_back(c - 'a');
    return tokens;
  }
};

/// Always says: after a token comes the next one, but after c comes b or c, one to three.
class NextLetter : public Layer {
 public:
  torch::Tensor forward(const torch::Tensor& input, const StepContext& context) override {
    EXPECT_FALSE(context.training);
    EXPECT_LE(input.size(1), 4);
    auto chances = torch::tensor({{0.0, 1.0, 0.0}, {0.0, 0.0, 1.0}, {0.0, 0.25, 0.75}});
    return chances.log().index({input});
  }
};

TEST(SampleText, FollowsTheProbabilitiesOfTheModel) {
  LayerList model;
  model.add("next", std::make_shared<NextLetter>());
  Letters letters;
  auto text = sample_text(model, letters, "a", 4000, RandomKey(1));
  ASSERT_EQ(text.size(), 4001u);
  EXPECT_EQ(text.substr(0, 3), "abc") << "the prompt, and what must follow";
  EXPECT_EQ(text.find('a', 1), std::string::npos);
  EXPECT_EQ(text.find("bb"), std::string::npos);
  int after_c = 0, b_after_c = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i - 1] != 'c') continue;
    ++after_c;
    b_after_c += text[i] == 'b';
  }
  EXPECT_NEAR(static_cast<double>(b_after_c) / after_c, 0.25, 0.04);
  EXPECT_EQ(sample_text(model, letters, "a", 50, RandomKey(1)), text.substr(0, 51)) << "keyed";
  EXPECT_NE(sample_text(model, letters, "a", 50, RandomKey(2)), text.substr(0, 51));
  EXPECT_EQ(sample_text(model, letters, "abcab", 0, RandomKey(2)), "abcab");
  EXPECT_THROW(sample_text(model, letters, "", 5, RandomKey(1)), ConfigError);
}

}  // namespace
}  // namespace yoke::model
