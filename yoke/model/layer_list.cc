#include "yoke/model/layer_list.h"

#include <torch/torch.h>

#include <algorithm>
#include <map>

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
  separate_.push_back(false);
  return *this;
}

torch::Tensor LayerList::forward(torch::Tensor input, const StepContext& context) {
  input = as_parameters_are(std::move(input), layers_);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    StepContext own = context;
    if (calls_[i] > 0) own.key = context.key.with("call").with(calls_[i]);
    if (layers_[i]->uses_process_generator())
      torch::manual_seed(own.key.with(layers_[i]->path()).value());
    const auto call = [&](const torch::Tensor& x) { return layers_[i]->forward(x, own); };
    input = input.contiguous();
    input = separate_[i] && torch::GradMode::is_enabled()
                ? in_a_segment(input, call, i, differentiating_)
                : call(input);
  }
  return input;
}

std::vector<LayerList::Tied> LayerList::tied() const {
  std::vector<Tied> all;
  std::map<const void*, std::size_t> places;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    for (const auto& parameter : layers_[i]->parameters()) {
      const auto [place, is_new] = places.emplace(parameter.unsafeGetTensorImpl(), all.size());
      if (is_new) all.push_back({parameter, {}});
      auto& entries = all[place->second].entries;
      if (entries.empty() || entries.back() != i) entries.push_back(i);
    }
  }
  std::erase_if(all, [](const Tied& tied) { return tied.entries.size() < 2; });
  return all;
}

void LayerList::separate_uses(bool on) {
  separate_.assign(layers_.size(), false);
  if (!on) return;
  for (const Tied& tied : tied()) {
    for (const std::size_t entry : tied.entries) separate_[entry] = true;
  }
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
