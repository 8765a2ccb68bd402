#include "yoke/model/layer_list.h"

#include <torch/torch.h>

#include <algorithm>

#include "yoke/base/error.h"

namespace yoke::model {
namespace {

torch::Tensor as_parameters_are(torch::Tensor input,
                                const std::vector<std::shared_ptr<Layer>>& layers) {
  if (!input.is_floating_point()) return input;
  for (const auto& layer : layers) {
    auto parameters = layer->parameters();
    if (!parameters.empty()) return input.to(parameters.front().scalar_type());
  }
  return input;
}

}  // namespace

LayerList& LayerList::add(const std::string& name, std::shared_ptr<Layer> layer) {
  YOKE_ENSURE(layer != nullptr, "layer \"", name, "\" is null.");
  auto calls = std::count(layers_.begin(), layers_.end(), layer);
  if (calls == 0) {
    YOKE_ENSURE(layer->path_.empty(), "layer \"", name, "\" is ", layer->path_,
                " of another list.");
    layer->path_ = cat("layers.", layers_.size());
    register_module(name, layer);
  }
  calls_.push_back(static_cast<std::uint64_t>(calls));
  layers_.push_back(std::move(layer));
  return *this;
}

torch::Tensor LayerList::forward(torch::Tensor input, const StepContext& context) {
  input = as_parameters_are(std::move(input), layers_);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    StepContext own = context;
    if (calls_[i] > 0) own.key = context.key.with("call").with(calls_[i]);
    if (layers_[i]->uses_process_generator())
      torch::manual_seed(own.key.with(layers_[i]->path()).value());
    input = layers_[i]->forward(input.contiguous(), own);
  }
  return input;
}

bool LayerList::uses_process_generator() const {
  return std::any_of(layers_.begin(), layers_.end(),
                     [](const auto& layer) { return layer->uses_process_generator(); });
}

void LayerList::initialize(std::uint64_t seed) {
  RandomKey key = RandomKey(seed).with("initial weights");
  for (const auto& item : named_children()) {
    std::static_pointer_cast<Layer>(item.value())->initialize(key.with(item.key()));
  }
}

}  // namespace yoke::model
