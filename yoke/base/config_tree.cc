#include "yoke/base/config_tree.h"

#include <algorithm>
#include <map>

#include "yoke/base/config_state.h"
#include "yoke/base/did_you_mean.h"
#include "yoke/base/error.h"
#include "yoke/base/files.h"

namespace yoke {
namespace {

using detail::ConfigKey;
using detail::ConfigState;
using detail::ConfigValue;
using Assignment = ConfigState::Assignment;

/// For a comment of TOML, which ends at the line's end.
std::string on_one_line(std::string text) {
  const auto breaks = [](unsigned char letter) { return letter < 0x20 || letter == 0x7f; };
  std::replace_if(text.begin(), text.end(), breaks, '?');
  return text;
}

}  // namespace

ConfigTree::ConfigTree() : state_(std::make_unique<ConfigState>()) {}
ConfigTree::~ConfigTree() = default;
ConfigTree::ConfigTree(ConfigTree&&) noexcept = default;

void ConfigTree::add(std::string key, std::int64_t* target, std::string help,
                     Range<std::int64_t> range) {
  state_->add(
      {.name = std::move(key), .help = std::move(help), .target = target, .integers = range});
}

void ConfigTree::add(std::string key, double* target, std::string help, Range<double> range) {
  state_->add({.name = std::move(key), .help = std::move(help), .target = target, .reals = range});
}

void ConfigTree::add(std::string key, bool* target, std::string help) {
  state_->add({.name = std::move(key), .help = std::move(help), .target = target});
}

void ConfigTree::add(std::string key, std::string* target, std::string help,
                     std::vector<std::string> choices) {
  state_->add({.name = std::move(key),
               .help = std::move(help),
               .target = target,
               .choices = std::move(choices)});
}

void ConfigTree::load_file(const std::filesystem::path& path) {
  std::string text;
  try {
    text = read_file(path);
  } catch (const IoError& error) {
    throw ConfigError(cat("there is no configuration: ", error.what()));
  }
  load_text(text, path.string());
}

void ConfigTree::load_text(std::string_view toml, std::string name) {
  ConfigState::apply(state_->read_toml(toml, name), Origin::kFile);
}

void ConfigTree::load_environment(const std::vector<std::string>& environment) {
  std::map<std::string, ConfigKey*, std::less<>> keys;
  std::vector<std::string> names;
  for (ConfigKey& key : state_->keys) {
    names.push_back(key.variable());
    keys[names.back()] = &key;
  }
  std::vector<Assignment> found;
  std::string errors;
  const auto complain = [&](const std::string& error) {
    errors += (errors.empty() ? "" : "\n") + error;
  };
  for (const std::string& entry : environment) {
    const std::size_t equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    if (!name.starts_with("YOKE_") || equals == std::string::npos || ConfigState::is_reserved(name))
      continue;
    const auto at = keys.find(name);
    if (at == keys.end()) {
      const auto nearest = did_you_mean(name, names);
      complain(cat("the environment variable ", name, " names no key of the configuration",
                   nearest
                       ? cat("; did you mean ", *nearest, "?")
                       : std::string(". Unset it, or see `yoke config show FILE --resolved`.")));
      continue;
    }
    try {
      found.push_back(state_->read_value(*at->second, entry.substr(equals + 1), name));
    } catch (const ConfigError& error) {
      complain(error.what());
    }
  }
  if (!errors.empty()) throw ConfigError(errors);
  ConfigState::apply(found, Origin::kEnvironment);
}

void ConfigTree::set(std::string_view assignment, std::string flag) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    throw ConfigError(
        cat(flag, " wants section.key=value, and got ", detail::excerpt(assignment), "."));
  }
  const std::string name(assignment.substr(0, equals));
  ConfigKey* key = state_->find(name);
  if (key == nullptr && state_->is_section(name)) {
    throw ConfigError(cat(flag, ": \"", name, "\" is a section; name the key too, as in ", flag,
                          ' ', name, ".key=", detail::excerpt(assignment.substr(equals + 1)), '.'));
  }
  if (key == nullptr) throw ConfigError(cat(flag, ": ", state_->unknown(name)));
  ConfigState::apply({state_->read_value(*key, assignment.substr(equals + 1), flag)},
                     Origin::kFlag);
}

std::vector<ConfigTree::Entry> ConfigTree::entries() const {
  std::vector<Entry> entries;
  for (const ConfigKey& key : state_->keys) {
    entries.push_back({key.name, detail::toml_of(key.value()), key.help, key.origin_text});
  }
  return entries;
}

std::string ConfigTree::to_toml(bool origin) const {
  // Keys without a section come first: after a [section] they would belong to it.
  std::vector<std::string> sections = {""};
  std::map<std::string, std::string> lines;
  for (const Entry& entry : entries()) {
    const std::size_t dot = entry.key.rfind('.');
    const bool top = dot == std::string::npos;
    const std::string section = top ? "" : entry.key.substr(0, dot);
    if (std::find(sections.begin(), sections.end(), section) == sections.end()) {
      sections.push_back(section);
    }
    lines[section] += cat(top ? entry.key : entry.key.substr(dot + 1), " = ", entry.value,
                          origin ? "  # " + on_one_line(entry.origin) : "", "\n");
  }
  std::string text;
  for (const std::string& section : sections) {
    if (!section.empty()) text += cat(text.empty() ? "" : "\n", "[", section, "]\n");
    text += lines[section];
  }
  return text;
}

std::vector<std::string> ConfigTree::differences(
    std::string_view other_toml, const std::function<bool(std::string_view)>& matters) const {
  std::map<std::string, ConfigValue> others;
  for (Assignment& other : state_->read_toml(other_toml, "the other configuration")) {
    others[other.key->name] = std::move(other.value);
  }
  std::vector<std::string> names;
  for (const ConfigKey& key : state_->keys) {
    const auto other = others.find(key.name);
    const ConfigValue& value = other == others.end() ? key.standard : other->second;
    if (value != key.value() && matters(key.name)) names.push_back(key.name);
  }
  return names;
}

}  // namespace yoke
