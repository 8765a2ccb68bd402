#include "yoke/model/registry.h"

#include <torch/torch.h>

#include "yoke/base/config_tree.h"
#include "yoke/base/error.h"
#include "yoke/model/built_in.h"

namespace yoke::model {
namespace {

/// Not Module::to, which would turn integer buffers into floating-point ones.
void convert_floating(LayerList& model, torch::ScalarType dtype) {
  auto convert = [dtype](torch::Tensor tensor) {
    if (tensor.is_floating_point() && tensor.scalar_type() != dtype)
      tensor.set_data(tensor.to(dtype));
  };
  for (const auto& parameter : model.parameters()) convert(parameter);
  for (const auto& buffer : model.buffers()) convert(buffer);
}

torch::ScalarType dtype_of(const ModelOptions& options) {
  if (options.dtype == "float32") return torch::kFloat32;
  if (options.dtype == "float64") return torch::kFloat64;
  throw ConfigError(
      cat("model.dtype must be \"float32\" or \"float64\", and is \"", options.dtype, "\"."));
}

}  // namespace

Registry Registry::with_built_in() {
  Registry registry;
  registry.add("mlp", make_mlp);
  registry.add("cnn", make_cnn);
  registry.add("gpt", make_gpt);
  return registry;
}

void Registry::add(const std::string& name, Factory factory) {
  if (!factories_.emplace(name, std::move(factory)).second) {
    throw ConfigError(cat("a model \"", name, "\" is registered already. Choose another name."));
  }
}

std::shared_ptr<LayerList> Registry::make(const ModelOptions& options, const data::Shape& shape,
                                          std::uint64_t seed) const {
  auto found = factories_.find(options.name);
  if (found == factories_.end()) {
    auto guess = did_you_mean(options.name, names());
    std::string known;
    for (const auto& name : names()) known += cat(known.empty() ? "" : ", ", name);
    throw ConfigError(cat("no model is called \"", options.name, "\". ",
                          guess ? cat("Did you mean \"", *guess, "\"? ") : std::string(),
                          "There are ", known, "."));
  }
  auto dtype = dtype_of(options);
  if (!(options.dropout >= 0.0 && options.dropout < 1.0)) {
    throw ConfigError(
        cat("model.dropout must be at least 0 and below 1, and is ", options.dropout, "."));
  }
  auto model = found->second(options, shape, seed);
  if (model == nullptr || model->layers().empty()) {
    throw ConfigError(cat("the program's factory of model \"", options.name, "\" made no layers."));
  }
  convert_floating(*model, dtype);
  return model;
}

std::vector<std::string> Registry::names() const {
  std::vector<std::string> names;
  for (const auto& [name, factory] : factories_) names.push_back(name);
  return names;
}

}  // namespace yoke::model
