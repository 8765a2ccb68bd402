#pragma once

#include <cstdint>
#include <string>

#include "yoke/base/random.h"
#include "yoke/data/dataset.h"
#include "yoke/model/layer_list.h"

namespace yoke::model {

/// Continues `prompt` character by character at temperature 1, keyed by `key`; returns the prompt
/// and what follows. The model sees as many of the last characters as it was made for. Throws
/// ConfigError for an empty prompt, or one with characters that the text does not have. Costs a
/// forward pass a character.
std::string sample_text(LayerList& model, const data::Dataset& text, const std::string& prompt,
                        std::int64_t characters, const RandomKey& key);

}  // namespace yoke::model
