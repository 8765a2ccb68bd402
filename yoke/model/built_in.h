#pragma once

#include "yoke/model/registry.h"

namespace yoke::model {

/// The built-in models, with initial weights drawn, in float32. Each throws ConfigError for options
/// that do not fit.

/// Any rows of numbers: `depth` hidden layers of `hidden` with ReLU, dropout after each, and a
/// linear output.
std::shared_ptr<LayerList> make_mlp(const ModelOptions& options, const data::Shape& shape,
                                    std::uint64_t seed);

/// Pictures [channels, h, w], h and w at least 4: twice (3x3 convolution, batch norm, ReLU, 2x2
/// pooling) with `channels` and twice as many, dropout, and a linear output.
std::shared_ptr<LayerList> make_cnn(const ModelOptions& options, const data::Shape& shape,
                                    std::uint64_t seed);

/// Tokens: embedding of token and position, `depth` transformer blocks, a head of its own. Each
/// block is a layer.
std::shared_ptr<LayerList> make_gpt(const ModelOptions& options, const data::Shape& shape,
                                    std::uint64_t seed);

}  // namespace yoke::model
