#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "yoke/data/dataset.h"
#include "yoke/model/layer_list.h"

namespace yoke::model {

/// The options of all models by name; each reads those that it knows.
struct ModelOptions {
  std::string name = "mlp";      ///< "mlp", "cnn", "gpt", or one that the program registered
  std::string dtype = "float32"; ///< or "float64"
  std::int64_t hidden = 128;     ///< mlp: width of its hidden layers
  std::int64_t depth = 2;        ///< mlp: hidden layers; gpt: blocks
  std::int64_t channels = 16;    ///< cnn: of the first convolution; the second has twice as many
  std::int64_t width = 128;      ///< gpt: of the embedding
  std::int64_t heads = 4;        ///< gpt
  double dropout = 0.0;
};

using Factory = std::function<std::shared_ptr<LayerList>(const ModelOptions&, const data::Shape&, std::uint64_t seed)>;

/// Models by name. A program that brings its own adds it and hands the registry to train::run.
class Registry {
 public:
  static Registry with_built_in();
  void add(const std::string& name, Factory factory);
  /// Throws ConfigError: unknown name (did you mean), or options that do not fit the data (heads that do not divide
  /// the width, a cnn on flat input).
  std::shared_ptr<LayerList> make(const ModelOptions& options, const data::Shape& shape, std::uint64_t seed) const;
  std::vector<std::string> names() const;

 private:
  std::map<std::string, Factory> factories_;
};

/// Cross-entropy, a mean over the samples (or tokens) of the micro-batch. `output`: [n, classes] or
/// [n, length, vocabulary].
torch::Tensor cross_entropy(const torch::Tensor& output, const torch::Tensor& target);
/// How many of the samples (or tokens) are predicted right.
std::int64_t correct(const torch::Tensor& output, const torch::Tensor& target);

/// Continues `prompt` character by character at temperature 1, keyed by `key`.
std::string sample_text(LayerList& model, const data::Dataset& text, const std::string& prompt, std::int64_t characters,
                        const RandomKey& key);

}  // namespace yoke::model
