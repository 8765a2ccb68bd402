#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "yoke/data/dataset.h"
#include "yoke/model/layer_list.h"

namespace yoke::bench {

/// gpt: width 256, 4 blocks, 4 heads, 96 characters, 128 a sample: 3.24 million parameters.
/// cnn: 28x28 pictures, 32 and 64 channels, batch norm: 50 thousand parameters.
/// bench/peers/models.py has the same. Throws ConfigError for other names.
std::shared_ptr<model::LayerList> make_network(const std::string& name);

/// Made-up samples of that network's shape, the same for the same seed: the time of a step does not
/// depend on the numbers.
data::Batch make_batch(const std::string& network, std::int64_t samples, std::uint64_t seed);

}  // namespace yoke::bench
