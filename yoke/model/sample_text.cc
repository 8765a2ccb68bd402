#include "yoke/model/sample_text.h"

#include <torch/torch.h>

#include <algorithm>

#include "yoke/base/error.h"

namespace yoke::model {
namespace {

/// The token at which the running sum of probabilities passes `part` of the whole.
std::int64_t token_at(const torch::Tensor& scores, double part) {
  auto probabilities = torch::softmax(scores.to(torch::kDouble), -1).contiguous();
  const double* p = probabilities.const_data_ptr<double>();
  double sum = 0.0;
  for (std::int64_t token = 0; token < probabilities.numel(); ++token) {
    sum += p[token];
    if (part < sum) return token;
  }
  return probabilities.argmax().item<std::int64_t>();  // `part` lies in what rounding left of 1
}

}  // namespace

std::string sample_text(LayerList& model, const data::Dataset& text, const std::string& prompt,
                        std::int64_t characters, const RandomKey& key) {
  torch::NoGradGuard no_grad;
  std::vector<std::int64_t> tokens = text.encode(prompt);
  if (tokens.empty())
    throw ConfigError("the prompt is empty. Give at least one character to continue.");
  std::int64_t length = text.shape().input.at(0);
  RandomKey draws = key.with("sample");
  for (std::int64_t i = 0; i < characters; ++i) {
    auto seen = std::min<std::int64_t>(length, static_cast<std::int64_t>(tokens.size()));
    auto input =
        torch::tensor(std::vector<std::int64_t>(tokens.end() - seen, tokens.end())).unsqueeze(0);
    auto output = model.forward(input, {.key = key, .training = false});
    tokens.push_back(token_at(output[0][seen - 1], draws.uniform(static_cast<std::uint64_t>(i))));
  }
  return text.decode(tokens);
}

}  // namespace yoke::model
