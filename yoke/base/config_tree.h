#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/did_you_mean.h"

namespace yoke {

namespace detail {
struct ConfigState;
}

/// Bounds of a number, both inclusive.
template <typename T>
struct Range {
  std::optional<T> least{};
  std::optional<T> most{};
};

/// Binds the keys of a configuration ("optimizer.lr") to typed variables of the program, and fills
/// them from a TOML file, the environment (YOKE_OPTIMIZER_LR) and the command line (--set
/// optimizer.lr=0.1). Command line wins over environment over file over default, whatever the order
/// of the calls.
///
/// Errors are ConfigError: an unknown key with file, line, column and "did you mean"; a wrong type
/// or a value out of range with what was expected and what was found. All errors of a file are
/// reported at once. Not thread-safe.
class ConfigTree {
 public:
  enum class Origin { kDefault, kFile, kEnvironment, kFlag };

  ConfigTree();
  ~ConfigTree();
  ConfigTree(ConfigTree&&) noexcept;

  /// Declares a key: words of a-z, 0-9 and _ with dots between. The target's value now is the
  /// default, and must be in range; it outlives the tree. `help` is one line, with the unit.
  void add(std::string key, std::int64_t* target, std::string help, Range<std::int64_t> range = {});
  void add(std::string key, double* target, std::string help, Range<double> range = {});
  void add(std::string key, bool* target, std::string help);
  /// `choices`: the values allowed; empty for any text.
  void add(std::string key, std::string* target, std::string help,
           std::vector<std::string> choices = {});

  /// Reads TOML; relative paths in it stay as they are written.
  void load_file(const std::filesystem::path& path);
  void load_text(std::string_view toml, std::string name);
  /// Every variable YOKE_A_B... that is not reserved (YOKE_FAULT, YOKE_LOG, YOKE_TOKEN) must name a
  /// key. `environment` holds "NAME=value" entries, as environ does.
  void load_environment(const std::vector<std::string>& environment);
  /// One "section.key=value". The value is TOML; text needs no quotes.
  void set(std::string_view assignment, std::string flag = "--set");

  struct Entry {
    std::string key, value, help,
        origin;  ///< value as TOML; origin "default", "FILE:12", "YOKE_X", "--set"
  };
  std::vector<Entry> entries() const;
  /// The whole tree as TOML that load_file reads back to the same values; with `origin`, each line
  /// ends in a comment that says where the value came from.
  /// nan is no value of a number; inf is.
  std::string to_toml(bool origin = false) const;
  /// Keys whose values differ between this tree and `other_toml`, among those that `matters`
  /// accepts.
  std::vector<std::string> differences(std::string_view other_toml,
                                       const std::function<bool(std::string_view)>& matters) const;

 private:
  std::unique_ptr<detail::ConfigState> state_;
};

}  // namespace yoke
