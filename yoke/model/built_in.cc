#include "yoke/model/built_in.h"

#include "yoke/base/error.h"
#include "yoke/model/convolution.h"
#include "yoke/model/dropout.h"
#include "yoke/model/linear.h"
#include "yoke/model/transformer.h"

namespace yoke::model {
namespace {

void check_at_least(const char* key, std::int64_t value, std::int64_t least) {
  if (value < least)
    throw ConfigError(cat("model.", key, " must be ", least, " or more, and is ", value, "."));
}

void add_dropout(LayerList& model, const std::string& name, double p) {
  if (p > 0.0) model.add(name, std::make_shared<Dropout>(p));
}

void refuse_text(const std::string& model, const data::Shape& shape) {
  if (shape.tokens) {
    throw ConfigError(cat("model \"", model,
                          "\" takes numbers, but the data is a text. Use model.name = \"gpt\"."));
  }
}

}  // namespace

std::shared_ptr<LayerList> make_mlp(const ModelOptions& options, const data::Shape& shape,
                                    std::uint64_t seed) {
  refuse_text("mlp", shape);
  check_at_least("hidden", options.hidden, 1);
  check_at_least("depth", options.depth, 0);
  auto model = std::make_shared<LayerList>();
  std::int64_t width = 1;
  for (std::int64_t size : shape.input) width *= size;
  if (shape.input.size() > 1) model->add("flatten", std::make_shared<Flatten>());
  for (std::int64_t i = 1; i <= options.depth; ++i) {
    model->add(cat("hidden", i),
               std::make_shared<Linear>(width, options.hidden, Linear::Activation::kRelu));
    add_dropout(*model, cat("dropout", i), options.dropout);
    width = options.hidden;
  }
  model->add("output", std::make_shared<Linear>(width, shape.classes));
  model->initialize(seed);
  return model;
}

std::shared_ptr<LayerList> make_cnn(const ModelOptions& options, const data::Shape& shape,
                                    std::uint64_t seed) {
  refuse_text("cnn", shape);
  check_at_least("channels", options.channels, 1);
  if (shape.input.size() != 3 || shape.input[1] < 4 || shape.input[2] < 4) {
    std::string found;
    for (std::int64_t size : shape.input) found += cat(found.empty() ? "" : "x", size);
    throw ConfigError(
        cat("model \"cnn\" takes pictures of channels x height x width, 4 or more high and wide, "
            "but a ",
            "sample of the data is ", found, ". Use model.name = \"mlp\", or data of pictures."));
  }
  std::int64_t first = options.channels, second = 2 * options.channels;
  auto model = std::make_shared<LayerList>();
  model->add("conv1", std::make_shared<Conv2d>(shape.input[0], first));
  model->add("norm1", std::make_shared<BatchNorm2d>(first));
  model->add("pool1", std::make_shared<MaxPool2d>());
  model->add("conv2", std::make_shared<Conv2d>(first, second));
  model->add("norm2", std::make_shared<BatchNorm2d>(second));
  model->add("pool2", std::make_shared<MaxPool2d>());
  model->add("flatten", std::make_shared<Flatten>());
  add_dropout(*model, "dropout", options.dropout);
  std::int64_t pixels = (shape.input[1] / 2 / 2) * (shape.input[2] / 2 / 2);
  model->add("output", std::make_shared<Linear>(second * pixels, shape.classes));
  model->initialize(seed);
  return model;
}

std::shared_ptr<LayerList> make_gpt(const ModelOptions& options, const data::Shape& shape,
                                    std::uint64_t seed) {
  if (!shape.tokens) {
    throw ConfigError(
        "model \"gpt\" takes a text, but the data is numbers. Use data.kind = \"text\", or another "
        "model.");
  }
  check_at_least("width", options.width, 1);
  check_at_least("depth", options.depth, 1);
  check_at_least("heads", options.heads, 1);
  if (options.width % options.heads != 0) {
    throw ConfigError(
        cat("model.heads (", options.heads, ") must divide model.width (", options.width, ")."));
  }
  auto model = std::make_shared<LayerList>();
  model->add("embedding", std::make_shared<TokenEmbedding>(shape.classes, shape.input.at(0),
                                                           options.width, options.dropout));
  for (std::int64_t i = 1; i <= options.depth; ++i) {
    model->add(cat("block", i), std::make_shared<TransformerBlock>(
                                    TransformerBlock::Options{.width = options.width,
                                                              .heads = options.heads,
                                                              .depth = options.depth,
                                                              .dropout = options.dropout}));
  }
  model->add("head", std::make_shared<VocabularyHead>(options.width, shape.classes));
  model->initialize(seed);
  return model;
}

}  // namespace yoke::model
