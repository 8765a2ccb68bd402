#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "yoke/data/dataset.h"
#include "yoke/model/layer_list.h"
#include "yoke/model/loss.h"
#include "yoke/model/sample_text.h"

namespace yoke::model {

/// The options of all models by name; each reads those that it knows.
struct ModelOptions {
  std::string name = "mlp";       ///< "mlp", "cnn", "gpt", or one that the program registered
  std::string dtype = "float32";  ///< or "float64"
  std::int64_t hidden = 128;      ///< mlp: width of its hidden layers
  std::int64_t depth = 2;         ///< mlp: hidden layers; gpt: blocks
  std::int64_t channels = 16;     ///< cnn: of the first convolution; the second has twice as many
  std::int64_t width = 128;       ///< gpt: of the embedding
  std::int64_t heads = 4;         ///< gpt
  double dropout = 0.0;
};

using Factory = std::function<std::shared_ptr<LayerList>(const ModelOptions&, const data::Shape&,
                                                         std::uint64_t seed)>;

/// Models by name. A program that brings its own adds it and hands the registry to train::run.
class Registry {
 public:
  static Registry with_built_in();
  /// Throws ConfigError if the name is taken.
  void add(const std::string& name, Factory factory);
  /// The model with its initial weights, which depend on the options, the shape and the seed alone,
  /// in the dtype asked for. Throws ConfigError: unknown name (did you mean), or options that do
  /// not fit the data (heads that do not divide the width, a cnn on flat input).
  std::shared_ptr<LayerList> make(const ModelOptions& options, const data::Shape& shape,
                                  std::uint64_t seed) const;
  std::vector<std::string> names() const;

 private:
  std::map<std::string, Factory> factories_;
};

}  // namespace yoke::model
