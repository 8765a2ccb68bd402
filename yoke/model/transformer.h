#pragma once

#include "yoke/model/layer_list.h"

namespace yoke::model {

/// The standard deviation of the initial weights of embeddings and linears, as in GPT-2 (Radford et
/// al., 2019).
inline constexpr double kTransformerDeviation = 0.02;

/// Token ids [n, t] to vectors [n, t, width]: what a token is, and where it stands; dropout. t is
/// at most `length`.
class TokenEmbedding final : public Layer {
 public:
  TokenEmbedding(std::int64_t vocabulary, std::int64_t length, std::int64_t width, double dropout);
  torch::Tensor forward(const torch::Tensor& input, const StepContext& context) override;
  void initialize(const RandomKey& key) override;

 private:
  double dropout_;
  torch::Tensor token_, position_;
};

/// A pre-norm transformer block (Vaswani et al., 2017; Radford et al., 2019): x +
/// attention(norm(x)), then x + mlp(norm(x)), the mlp four times as wide inside, with GELU; dropout
/// on both before they are added. Causal: position i sees 0 .. i. Projections into the residual
/// start smaller by sqrt(2 * depth).
class TransformerBlock final : public Layer {
 public:
  struct Options {
    std::int64_t width = 0;
    std::int64_t heads = 0;
    std::int64_t depth = 0;  ///< blocks of the whole model
    double dropout = 0.0;
  };
  explicit TransformerBlock(const Options& options);
  torch::Tensor forward(const torch::Tensor& input, const StepContext& context) override;
  void initialize(const RandomKey& key) override;

 private:
  torch::Tensor attend(const torch::Tensor& input) const;
  torch::Tensor dropped(const torch::Tensor& input, const StepContext& context,
                        const char* where) const;

  Options options_;
  torch::Tensor norm1_weight_, norm1_bias_, qkv_weight_, qkv_bias_, out_weight_, out_bias_;
  torch::Tensor norm2_weight_, norm2_bias_, up_weight_, up_bias_, down_weight_, down_bias_;
};

/// norm(x) W^T: vectors [n, t, width] to scores [n, t, vocabulary]. Its weight is not that of the
/// embedding.
class VocabularyHead final : public Layer {
 public:
  VocabularyHead(std::int64_t width, std::int64_t vocabulary);
  torch::Tensor forward(const torch::Tensor& input, const StepContext& context) override;
  void initialize(const RandomKey& key) override;

 private:
  torch::Tensor norm_weight_, norm_bias_, weight_;
};

}  // namespace yoke::model
