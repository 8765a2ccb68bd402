#include "bench/networks.h"

#include <torch/torch.h>

#include "yoke/base/error.h"
#include "yoke/model/registry.h"

namespace yoke::bench {
namespace {

constexpr std::int64_t kVocabulary = 96, kLength = 128, kClasses = 10, kPixels = 28;

data::Shape shape_of(const std::string& network) {
  if (network == "gpt") return {.input = {kLength}, .classes = kVocabulary, .tokens = true};
  if (network == "cnn") return {.input = {1, kPixels, kPixels}, .classes = kClasses};
  throw ConfigError(cat("there is no network \"", network, "\" here; there are gpt and cnn."));
}

}  // namespace

std::shared_ptr<model::LayerList> make_network(const std::string& name) {
  const model::ModelOptions options{
      .name = name, .depth = 4, .channels = 32, .width = 256, .heads = 4};
  return model::Registry::with_built_in().make(options, shape_of(name), /*seed=*/1);
}

data::Batch make_batch(const std::string& network, std::int64_t samples, std::uint64_t seed) {
  torch::manual_seed(seed);
  if (network == "gpt") {
    return {.input = torch::randint(kVocabulary, {samples, kLength}, torch::kInt64),
            .target = torch::randint(kVocabulary, {samples, kLength}, torch::kInt64),
            .weight = samples * kLength};
  }
  return {.input = torch::randn({samples, 1, kPixels, kPixels}),
          .target = torch::randint(kClasses, {samples}, torch::kInt64),
          .weight = samples};
}

}  // namespace yoke::bench
