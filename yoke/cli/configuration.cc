#include "yoke/cli/configuration.h"

#include "yoke/base/error.h"
#include "yoke/net/place.h"
#include "yoke/train/run_config.h"

namespace yoke::cli {

Configuration::Configuration() : values_(std::make_unique<train::RunConfig>()) {
  train::bind(tree_, *values_);
}

Configuration::~Configuration() = default;
Configuration::Configuration(Configuration&&) noexcept = default;

Configuration Configuration::resolve(const std::filesystem::path& file,
                                     const std::vector<FlagValue>& flags) {
  Configuration configuration;
  configuration.tree_.load_file(file);
  configuration.tree_.load_environment(process_environment());
  for (const auto& flag : flags) configuration.tree_.set(flag.assignment, flag.flag);
  train::check(*configuration.values_);
  return configuration;
}

Configuration Configuration::recorded(const std::filesystem::path& file) {
  Configuration configuration;
  configuration.tree_.load_file(file);
  return configuration;
}

std::vector<FlagValue> set_flags(const std::vector<std::string>& assignments) {
  std::vector<FlagValue> flags;
  for (const auto& assignment : assignments) flags.push_back({assignment, "--set"});
  return flags;
}

}  // namespace yoke::cli
