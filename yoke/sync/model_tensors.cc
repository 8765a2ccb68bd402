#include "yoke/sync/model_tensors.h"

#include <torch/torch.h>

#include <map>

#include "yoke/base/error.h"
#include "yoke/model/layer_list.h"
#include "yoke/tensor/bridge.h"

namespace yoke::sync {

namespace {

bool fits_arena(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

bool is_float(DType dtype) {
  return fits_arena(dtype) || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

}  // namespace

ModelTensors::ModelTensors(torch::nn::Module& module) {
  std::map<const void*, std::string> seen;
  auto checked = [&](const std::string& name, const at::Tensor& tensor) {
    if (!tensor.defined())
      throw ConfigError(cat(name, " is undefined. Initialise it before yoke takes the model."));
    const DType dtype = tensor::entry_for(name, tensor).dtype;
    if (is_float(dtype) && !fits_arena(dtype)) {
      throw ConfigError(cat(name, " is ", name_of(dtype),
                            ". yoke trains float32 and float64 tensors: convert the model with "
                            "to(torch::kFloat32)."));
    }
    const auto [other, is_new] = seen.emplace(tensor.unsafeGetTensorImpl(), name);
    if (!is_new)
      throw ConfigError(cat(other->second, " and ", name,
                            " are one tensor. Register it once and use it in both places."));
    if (dtype == DType::kFloat64) widest = DType::kFloat64;
    return dtype;
  };
  std::map<const void*, std::size_t> parameters;
  for (const auto& item : module.named_parameters()) {
    if (parameters.contains(item.value().unsafeGetTensorImpl())) continue;
    parameters.emplace(item.value().unsafeGetTensorImpl(), trainable.size());
    if (!fits_arena(checked(item.key(), item.value()))) {
      throw ConfigError(cat(item.key(), " is a parameter of an integer type; make it a buffer."));
    }
    (item.value().requires_grad() ? trainable : frozen).push_back({item.key(), item.value()});
  }
  for (const auto& item : module.named_buffers()) {
    (fits_arena(checked(item.key(), item.value())) ? averaged : agreed)
        .push_back({item.key(), item.value()});
  }
  if (const auto* list = dynamic_cast<const model::LayerList*>(&module)) {
    for (const auto& uses : list->tied()) {
      if (!uses.parameter.requires_grad()) continue;
      const std::size_t parameter = parameters.at(uses.parameter.unsafeGetTensorImpl());
      for (std::size_t i = 1; i < uses.entries.size(); ++i)
        tied.push_back({parameter, uses.entries[i]});
    }
  }
  if (trainable.empty())
    throw ConfigError(
        "the model has no parameter that requires a gradient, so there is nothing to train.");
}

tensor::ArenaLayout ModelTensors::gradient_layout() const {
  std::vector<tensor::ArenaLayout::Entry> entries;
  for (const auto& [name, tensor] : trainable) entries.push_back(tensor::entry_for(name, tensor));
  for (const auto& [name, tensor] : averaged)
    entries.push_back(tensor::entry_for("buffers/" + name, tensor));
  for (const TiedUse& use : tied) {
    const auto& [name, tensor] = trainable[use.parameter];
    entries.push_back(tensor::entry_for(cat(name, " in layers.", use.entry), tensor));
  }
  return tensor::ArenaLayout(std::move(entries), widest);
}

tensor::ArenaLayout ModelTensors::state_layout() const {
  std::vector<tensor::ArenaLayout::Entry> entries;
  for (const auto& [name, tensor] : trainable) entries.push_back(tensor::entry_for(name, tensor));
  for (const auto& [name, tensor] : frozen) entries.push_back(tensor::entry_for(name, tensor));
  return tensor::ArenaLayout(std::move(entries), widest);
}

}  // namespace yoke::sync
