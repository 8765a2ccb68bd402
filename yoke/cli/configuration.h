#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "yoke/base/config_tree.h"

namespace yoke::train {
struct RunConfig;
}

namespace yoke::cli {

/// A flag that stands for a key of the tree: {"train.steps=10", "--steps"}.
struct FlagValue {
  std::string assignment;
  std::string flag;
};

/// The values of one run and where each came from.
class Configuration {
 public:
  /// FILE, then this process's environment, then flags. Throws ConfigError; values are checked
  /// against each other.
  static Configuration resolve(const std::filesystem::path& file,
                               const std::vector<FlagValue>& flags);
  /// What a run recorded. The environment does not count: the past does not change.
  static Configuration recorded(const std::filesystem::path& file);

  ~Configuration();
  Configuration(Configuration&&) noexcept;

  const train::RunConfig& values() const { return *values_; }
  const ConfigTree& tree() const { return tree_; }

 private:
  Configuration();
  std::unique_ptr<train::RunConfig> values_;  ///< the tree points into it
  ConfigTree tree_;
};

/// The flags of --set, in their order.
std::vector<FlagValue> set_flags(const std::vector<std::string>& assignments);

}  // namespace yoke::cli
