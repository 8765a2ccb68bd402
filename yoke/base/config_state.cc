#include "yoke/base/config_state.h"

#include <algorithm>

#include "yoke/base/did_you_mean.h"
#include "yoke/base/error.h"

namespace yoke::detail {

bool is_plain_word(std::string_view word) {
  const auto fits = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '_';
  };
  return !word.empty() && std::all_of(word.begin(), word.end(), fits);
}

std::string excerpt(std::string_view text) {
  constexpr std::size_t kMost = 80;
  if (text.size() <= kMost) return toml_quoted(text);
  std::size_t end = kMost;
  // Not in the middle of a character of UTF-8.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return toml_quoted(text.substr(0, end)) + "...";
}

bool ConfigState::is_reserved(std::string_view variable) {
  return variable == "YOKE_FAULT" || variable == "YOKE_LOG" || variable == "YOKE_TOKEN";
}

void ConfigState::add(ConfigKey key) {
  for (std::size_t start = 0; start <= key.name.size();) {
    const std::size_t end = std::min(key.name.find('.', start), key.name.size());
    YOKE_ENSURE(is_plain_word(std::string_view(key.name).substr(start, end - start)), "The key ",
                key.name, " must be words of a-z, 0-9 and _ with dots between.");
    start = end + 1;
  }
  key.standard = key.value();
  const std::string variable = key.variable();
  YOKE_ENSURE(!is_reserved(variable), "The variable ", variable, " of the key ", key.name,
              " is reserved.");
  YOKE_ENSURE(key.accept(key.standard).has_value(), "The default of ", key.name, " is ",
              toml_of(key.standard), " and must be ", key.expectation(), ".");
  YOKE_ENSURE(!is_section(key.name), key.name, " is a section already.");
  for (const ConfigKey& other : keys) {
    YOKE_ENSURE(other.variable() != variable, "The keys ", other.name, " and ", key.name,
                " share the variable ", variable, ".");
    YOKE_ENSURE(!key.name.starts_with(other.name + "."), other.name, " is a key already.");
  }
  keys.push_back(std::move(key));
}

ConfigKey* ConfigState::find(std::string_view name) {
  const auto is_it = [&](const ConfigKey& key) { return key.name == name; };
  const auto at = std::find_if(keys.begin(), keys.end(), is_it);
  return at == keys.end() ? nullptr : &*at;
}

bool ConfigState::is_section(std::string_view name) const {
  return std::any_of(keys.begin(), keys.end(), [&](const ConfigKey& key) {
    return key.name.starts_with(name) && key.name.substr(name.size()).starts_with('.');
  });
}

std::string ConfigState::unknown(const std::string& name) const {
  std::vector<std::string> names;
  std::vector<std::string> namesakes;  // the same last word, under another section
  const std::string last = name.substr(name.rfind('.') + 1);
  for (const ConfigKey& key : keys) {
    names.push_back(key.name);
    for (std::size_t dot = key.name.find('.'); dot < key.name.size();
         dot = key.name.find('.', dot + 1)) {
      names.push_back(key.name.substr(0, dot));
    }
    if (key.name.ends_with("." + last)) namesakes.push_back(key.name);
  }
  auto nearest = did_you_mean(name, names);
  if (!nearest && namesakes.size() == 1) nearest = namesakes.front();
  const std::string start = "unknown key " + excerpt(name);
  if (nearest) return cat(start, "; did you mean \"", *nearest, "\"?");
  return start + ". `yoke config show FILE --resolved` lists those there are.";
}

void ConfigState::apply(const std::vector<Assignment>& assignments, ConfigTree::Origin origin) {
  for (const Assignment& assignment : assignments) {
    ConfigKey& key = *assignment.key;
    if (key.origin > origin) continue;
    key.assign(assignment.value);
    key.origin = origin;
    key.origin_text = assignment.origin;
  }
}

}  // namespace yoke::detail
