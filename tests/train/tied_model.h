#pragma once

#include "yoke/model/registry.h"

namespace yoke::test {

/// tanh(x W^T), three times the same linear layer, then y W with the same W, registered by another
/// layer, and a linear output. Parameters: "in.weight" (also "out.weight"), "middle.weight",
/// "middle.bias", "last.weight", "last.bias".
std::shared_ptr<model::LayerList> make_tied(const model::ModelOptions& options,
                                            const data::Shape& shape, std::uint64_t seed);

}  // namespace yoke::test
