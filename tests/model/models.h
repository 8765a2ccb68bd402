#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "yoke/model/registry.h"

namespace yoke::model {

/// The three built-in models, small, each with data that fits.
struct Case {
  ModelOptions options;
  data::Shape shape;
};

inline std::vector<Case> small_cases(const std::string& dtype = "float32", double dropout = 0.2) {
  return {{{.name = "mlp", .dtype = dtype, .hidden = 12, .depth = 2, .dropout = dropout},
           {.input = {9}, .classes = 4}},
          {{.name = "mlp", .dtype = dtype, .hidden = 5, .depth = 1, .dropout = dropout},
           {.input = {2, 3, 3}, .classes = 3}},
          {{.name = "cnn", .dtype = dtype, .channels = 3, .dropout = dropout},
           {.input = {1, 28, 28}, .classes = 10}},
          {{.name = "cnn", .dtype = dtype, .channels = 2, .dropout = dropout},
           {.input = {3, 9, 5}, .classes = 2}},
          {{.name = "gpt", .dtype = dtype, .depth = 2, .width = 16, .heads = 4, .dropout = dropout},
           {.input = {8}, .classes = 11, .tokens = true}}};
}

inline std::shared_ptr<LayerList> make(const Case& c, std::uint64_t seed = 1) {
  return Registry::with_built_in().make(c.options, c.shape, seed);
}

/// `count` samples of the shape, made without the process generator.
inline data::Batch samples(const data::Shape& shape, std::int64_t count, std::uint64_t seed = 5) {
  std::vector<std::int64_t> sizes{count};
  sizes.insert(sizes.end(), shape.input.begin(), shape.input.end());
  auto input = torch::empty(sizes);
  RandomKey key(seed);
  key.uniform({input.data_ptr<float>(), static_cast<std::size_t>(input.numel())});
  auto classes = [&](torch::Tensor uniform) { return (uniform * shape.classes).to(torch::kLong); };
  if (shape.tokens) {
    auto tokens = classes(input);
    return {.input = tokens, .target = tokens.roll(-1, 1).contiguous(), .weight = tokens.numel()};
  }
  auto target = torch::empty({count});
  key.with("target").uniform({target.data_ptr<float>(), static_cast<std::size_t>(count)});
  return {.input = input, .target = classes(target), .weight = count};
}

inline torch::Tensor flat(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> parts;
  for (const auto& tensor : tensors)
    parts.push_back(tensor.detach().reshape(-1).to(torch::kDouble));
  return torch::cat(parts);
}

inline torch::Tensor gradient(LayerList& model, const data::Batch& batch,
                              const StepContext& context) {
  model.zero_grad();
  cross_entropy(model.forward(batch.input, context), batch.target).backward();
  std::vector<torch::Tensor> parts;
  for (const auto& parameter : model.parameters()) parts.push_back(parameter.grad());
  return flat(parts);
}

}  // namespace yoke::model
