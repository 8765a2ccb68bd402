#include "yoke/data/dataset.h"

#include "yoke/base/error.h"

namespace yoke::data {

std::string Dataset::decode(std::span<const std::int64_t>) const {
  throw ConfigError(
      "this data set is not a text: it has no characters to decode. Use data.kind = \"text\".");
}

std::vector<std::int64_t> Dataset::encode(const std::string&) const {
  throw ConfigError(
      "this data set is not a text: it has no vocabulary to encode with. Use data.kind = "
      "\"text\".");
}

}  // namespace yoke::data
