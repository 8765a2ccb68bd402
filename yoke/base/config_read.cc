#include <toml++/toml.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "yoke/base/config_state.h"
#include "yoke/base/did_you_mean.h"
#include "yoke/base/error.h"

namespace yoke::detail {
namespace {

using Assignment = ConfigState::Assignment;

toml::table parsed(std::string_view text, const std::string& name) {
  // Every dot may open a table inside a table, and toml++ takes them apart recursively.
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  constexpr std::ptrdiff_t kMostDots = 10000;
  if (text.size() > kMostBytes || std::count(text.begin(), text.end(), '.') > kMostDots) {
    throw ConfigError(cat(name, ": too large for a configuration; it may have ", kMostBytes,
                          " bytes and ", kMostDots, " dots. Is it the right file?"));
  }
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    throw ConfigError(
        cat(name, ":", at.line, ":", at.column, ": this is not TOML: ", error.description(), "."));
  }
}

std::optional<ConfigValue> scalar(const toml::node& node) {
  if (const auto* value = node.as_integer()) return ConfigValue(value->get());
  if (const auto* value = node.as_floating_point()) return ConfigValue(value->get());
  if (const auto* value = node.as_boolean()) return ConfigValue(value->get());
  if (const auto* value = node.as_string()) return ConfigValue(value->get());
  return std::nullopt;
}

std::string description(const toml::node& node) {
  if (const auto* text = node.as_string()) return excerpt(text->get());
  if (const auto* number = node.as_floating_point(); number && std::isnan(number->get())) {
    return "not a number";
  }
  if (const auto value = scalar(node)) return toml_of(*value);
  if (node.is_table()) return "a section";
  return node.is_array() ? "an array" : "a date or time";
}

/// The value of `node` for `key`, or what is wrong with it.
std::pair<std::optional<ConfigValue>, std::string> checked(const ConfigKey& key,
                                                           const toml::node& node) {
  const auto given = scalar(node);
  auto value = given ? key.accept(*given) : std::nullopt;
  if (value) return {std::move(value), ""};
  std::string error =
      cat(key.name, " must be ", key.expectation(), ", and is ", description(node), ".");
  if (const auto* text = node.as_string()) {
    const auto nearest = did_you_mean(text->get(), key.choices);
    if (nearest) error += cat(" Did you mean ", toml_quoted(*nearest), "?");
  }
  return {std::nullopt, std::move(error)};
}

/// Walks the tables of one text and collects its values and its errors.
class Reader {
 public:
  Reader(ConfigState& state, const std::string& name) : state_(state), name_(name) {}

  void read(const toml::table& table, const std::string& prefix) {
    for (const auto& [word, node] : table) {
      const std::string key_name = prefix + std::string(word.str());
      const toml::source_position at = word.source().begin;
      // "a.b" in quotes is one word with a dot in it, and not the key b of the section a.
      const bool plain = is_plain_word(word.str());
      ConfigKey* key = plain ? state_.find(key_name) : nullptr;
      if (key != nullptr) {
        auto [value, error] = checked(*key, node);
        if (value) {
          found_.push_back({key, std::move(*value), cat(name_, ":", at.line)});
        } else {
          complain(node.source().begin.line > 0 ? node.source().begin : at, error);
        }
      } else if (plain && state_.is_section(key_name)) {
        if (const auto* section = node.as_table()) {
          read(*section, key_name + ".");
        } else {
          complain(at, cat("\"", key_name, "\" is a section, written [", key_name,
                           "], and here is ", description(node), "."));
        }
      } else {
        complain(at, state_.unknown(key_name));
      }
    }
  }

  /// Throws if there were errors.
  std::vector<Assignment> found() && {
    if (errors_.empty()) return std::move(found_);
    std::string all;
    for (const auto& [position, error] : errors_) {
      all += cat(all.empty() ? "" : "\n", name_, ":", position.first, ":", position.second, ": ",
                 error);
    }
    throw ConfigError(all);
  }

 private:
  void complain(toml::source_position at, std::string error) {
    errors_.insert({{at.line, at.column}, std::move(error)});
  }

  ConfigState& state_;
  const std::string& name_;
  std::vector<Assignment> found_;
  std::multimap<std::pair<toml::source_index, toml::source_index>, std::string> errors_;
};

}  // namespace

std::vector<ConfigState::Assignment> ConfigState::read_toml(std::string_view text,
                                                            const std::string& name) {
  Reader reader(*this, name);
  reader.read(parsed(text, name), "");
  return std::move(reader).found();
}

ConfigState::Assignment ConfigState::read_value(ConfigKey& key, std::string_view text,
                                                const std::string& where) {
  const bool in_quotes = text.starts_with('"') || text.starts_with('\'');
  const bool bare = std::holds_alternative<std::string*>(key.target) && !in_quotes;
  toml::table table;
  try {
    table = parsed(cat("value = ", bare ? toml_quoted(text) : std::string(text)), where);
  } catch (const ConfigError&) {
    table.clear();
  }
  const toml::node* node = table.get("value");
  // A line break in the text could have opened further keys.
  if (node == nullptr || table.size() != 1) {
    throw ConfigError(cat(where, ": ", key.name, " must be ", key.expectation(), ", and is ",
                          excerpt(text), "."));
  }
  auto [value, error] = checked(key, *node);
  if (!value) throw ConfigError(cat(where, ": ", error));
  return {&key, std::move(*value), where};
}

}  // namespace yoke::detail
