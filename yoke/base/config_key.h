#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "yoke/base/config_tree.h"

namespace yoke::detail {

using ConfigValue = std::variant<std::int64_t, double, bool, std::string>;

/// `text` as a TOML basic string on one line.
std::string toml_quoted(std::string_view text);

/// As TOML that is read back to the same value, bit for bit.
std::string toml_of(const ConfigValue& value);

/// One key of a ConfigTree: where its value goes, what it may be, and where it came from.
struct ConfigKey {
  std::string name;
  std::string help;
  std::variant<std::int64_t*, double*, bool*, std::string*> target;
  Range<std::int64_t> integers{};
  Range<double> reals{};
  std::vector<std::string> choices{};
  ConfigValue standard{};  ///< the default
  ConfigTree::Origin origin = ConfigTree::Origin::kDefault;
  std::string origin_text = "default";

  ConfigValue value() const;
  void assign(const ConfigValue& value);
  /// `given` as this key holds it (a whole number is a real number too), or nothing: see
  /// `expectation`.
  std::optional<ConfigValue> accept(const ConfigValue& given) const;
  /// "an integer from 1 to 64", "one of "sgd", "adam"": what accept() takes.
  std::string expectation() const;
  /// YOKE_TRAIN_MICRO_BATCH for train.micro_batch.
  std::string variable() const;
};

}  // namespace yoke::detail
