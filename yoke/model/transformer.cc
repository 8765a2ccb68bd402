#include "yoke/model/transformer.h"

#include <torch/torch.h>

#include <cmath>

#include "yoke/base/error.h"
#include "yoke/model/dropout.h"
#include "yoke/model/initial_weights.h"

namespace yoke::model {
namespace {

torch::Tensor layer_norm(const torch::Tensor& input, const torch::Tensor& weight,
                         const torch::Tensor& bias) {
  return torch::layer_norm(input, weight.sizes(), weight, bias, /*eps=*/1e-5);
}

void set(torch::Tensor& parameter, double value) {
  torch::NoGradGuard no_grad;
  parameter.fill_(value);
}

}  // namespace

TokenEmbedding::TokenEmbedding(std::int64_t vocabulary, std::int64_t length, std::int64_t width,
                               double dropout)
    : dropout_(dropout),
      token_(register_parameter("token", torch::zeros({vocabulary, width}))),
      position_(register_parameter("position", torch::zeros({length, width}))) {}

torch::Tensor TokenEmbedding::forward(const torch::Tensor& input, const StepContext& context) {
  std::int64_t length = input.size(1);
  if (length > position_.size(0)) {
    throw ConfigError(cat("a text of ", length, " tokens does not fit a model that was made for ",
                          position_.size(0), ". Set data.length as it was in training."));
  }
  auto vectors = torch::embedding(token_, input) + position_.narrow(0, 0, length);
  if (!context.training || dropout_ == 0.0) return vectors;
  return dropout(vectors, dropout_, context.key.with(path()));
}

void TokenEmbedding::initialize(const RandomKey& key) {
  fill_normal(token_, key.with("token"), kTransformerDeviation);
  fill_normal(position_, key.with("position"), kTransformerDeviation);
}

TransformerBlock::TransformerBlock(const Options& options) : options_(options) {
  YOKE_ENSURE(options.heads > 0 && options.width % options.heads == 0, options.heads,
              " heads, width ", options.width);
  std::int64_t width = options.width;
  norm1_weight_ = register_parameter("norm1_weight", torch::ones({width}));
  norm1_bias_ = register_parameter("norm1_bias", torch::zeros({width}));
  qkv_weight_ = register_parameter("qkv_weight", torch::zeros({3 * width, width}));
  qkv_bias_ = register_parameter("qkv_bias", torch::zeros({3 * width}));
  out_weight_ = register_parameter("out_weight", torch::zeros({width, width}));
  out_bias_ = register_parameter("out_bias", torch::zeros({width}));
  norm2_weight_ = register_parameter("norm2_weight", torch::ones({width}));
  norm2_bias_ = register_parameter("norm2_bias", torch::zeros({width}));
  up_weight_ = register_parameter("up_weight", torch::zeros({4 * width, width}));
  up_bias_ = register_parameter("up_bias", torch::zeros({4 * width}));
  down_weight_ = register_parameter("down_weight", torch::zeros({width, 4 * width}));
  down_bias_ = register_parameter("down_bias", torch::zeros({width}));
}

torch::Tensor TransformerBlock::attend(const torch::Tensor& input) const {
  std::int64_t samples = input.size(0), length = input.size(1), heads = options_.heads;
  auto qkv = torch::linear(input, qkv_weight_, qkv_bias_)
                 .view({samples, length, 3, heads, options_.width / heads})
                 .permute({2, 0, 3, 1, 4});
  auto mixed =
      at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], /*attn_mask=*/{}, /*dropout_p=*/0.0,
                                       /*is_causal=*/true);
  return torch::linear(mixed.transpose(1, 2).reshape({samples, length, options_.width}),
                       out_weight_, out_bias_);
}

torch::Tensor TransformerBlock::dropped(const torch::Tensor& input, const StepContext& context,
                                        const char* where) const {
  if (!context.training || options_.dropout == 0.0) return input;
  return dropout(input, options_.dropout, context.key.with(path()).with(where));
}

torch::Tensor TransformerBlock::forward(const torch::Tensor& input, const StepContext& context) {
  auto attended = attend(layer_norm(input, norm1_weight_, norm1_bias_));
  auto middle = input + dropped(attended, context, "attention");
  auto up = torch::gelu(
      torch::linear(layer_norm(middle, norm2_weight_, norm2_bias_), up_weight_, up_bias_));
  return middle + dropped(torch::linear(up, down_weight_, down_bias_), context, "mlp");
}

void TransformerBlock::initialize(const RandomKey& key) {
  double into_residual =
      kTransformerDeviation / std::sqrt(2.0 * static_cast<double>(options_.depth));
  fill_normal(qkv_weight_, key.with("qkv_weight"), kTransformerDeviation);
  fill_normal(out_weight_, key.with("out_weight"), into_residual);
  fill_normal(up_weight_, key.with("up_weight"), kTransformerDeviation);
  fill_normal(down_weight_, key.with("down_weight"), into_residual);
  for (auto* bias : {&norm1_bias_, &qkv_bias_, &out_bias_, &norm2_bias_, &up_bias_, &down_bias_})
    set(*bias, 0.0);
  set(norm1_weight_, 1.0);
  set(norm2_weight_, 1.0);
}

VocabularyHead::VocabularyHead(std::int64_t width, std::int64_t vocabulary)
    : norm_weight_(register_parameter("norm_weight", torch::ones({width}))),
      norm_bias_(register_parameter("norm_bias", torch::zeros({width}))),
      weight_(register_parameter("weight", torch::zeros({vocabulary, width}))) {}

torch::Tensor VocabularyHead::forward(const torch::Tensor& input, const StepContext&) {
  return torch::linear(layer_norm(input, norm_weight_, norm_bias_), weight_);
}

void VocabularyHead::initialize(const RandomKey& key) {
  set(norm_weight_, 1.0);
  set(norm_bias_, 0.0);
  fill_normal(weight_, key.with("weight"), kTransformerDeviation);
}

}  // namespace yoke::model
