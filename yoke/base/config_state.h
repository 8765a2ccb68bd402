#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/config_key.h"

namespace yoke::detail {

/// What a ConfigTree holds.
struct ConfigState {
  struct Assignment {
    ConfigKey* key;
    ConfigValue value;
    std::string origin;
  };

  std::vector<ConfigKey> keys{};  ///< in the order of add()

  /// Whether the environment variable means something else than a key.
  static bool is_reserved(std::string_view variable);
  /// `key` has all but its default, which is what its target holds now.
  void add(ConfigKey key);
  ConfigKey* find(std::string_view name);
  /// Whether keys start with `name` and a dot.
  bool is_section(std::string_view name) const;
  /// "unknown key "optimiser.lr"; did you mean "optimizer.lr"?"
  std::string unknown(const std::string& name) const;

  /// The values in a TOML text. Throws ConfigError that holds all errors of it, a line each.
  std::vector<Assignment> read_toml(std::string_view text, const std::string& name);
  /// A value that came from `where`, a flag or a variable: TOML, but text may do without its
  /// quotes.
  Assignment read_value(ConfigKey& key, std::string_view text, const std::string& where);
  /// Sets those that no stronger origin has set.
  static void apply(const std::vector<Assignment>& assignments, ConfigTree::Origin origin);
};

/// Whether a word of a key is made of a-z, 0-9 and _.
bool is_plain_word(std::string_view word);

/// For messages: what a user or a stranger wrote, in quotes and not longer than a line.
std::string excerpt(std::string_view text);

}  // namespace yoke::detail
