#include "yoke/base/config_key.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "yoke/base/error.h"

namespace yoke::detail {
namespace {

template <typename T>
bool within(const Range<T>& range, T value) {
  return (!range.least || value >= *range.least) && (!range.most || value <= *range.most);
}

template <typename T>
std::string bounds(const Range<T>& range) {
  const auto text = [](T bound) { return toml_of(ConfigValue(bound)); };
  if (range.least && range.most)
    return cat(" from ", text(*range.least), " to ", text(*range.most));
  if (range.least) return cat(" of at least ", text(*range.least));
  if (range.most) return cat(" of at most ", text(*range.most));
  return "";
}

std::string real(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  std::string text(digits, end);
  // TOML tells a float from an integer by its point or exponent.
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

std::string toml_quoted(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string result = "\"";
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      result += '\\';
      result += letter;
    } else if (letter == '\n') {
      result += "\\n";
    } else if (letter == '\t') {
      result += "\\t";
    } else if (code < 0x20 || code == 0x7f) {
      result += "\\u00";
      result += kDigits[code >> 4];
      result += kDigits[code & 15];
    } else {
      result += letter;
    }
  }
  return result + '"';
}

std::string toml_of(const ConfigValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&value)) return real(*number);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  return toml_quoted(std::get<std::string>(value));
}

ConfigValue ConfigKey::value() const {
  return std::visit([](const auto* place) { return ConfigValue(*place); }, target);
}

void ConfigKey::assign(const ConfigValue& value) {
  const auto set = [&](auto* place) { *place = std::get<std::decay_t<decltype(*place)>>(value); };
  std::visit(set, target);
}

std::optional<ConfigValue> ConfigKey::accept(const ConfigValue& given) const {
  if (std::holds_alternative<double*>(target)) {
    double number = 0;
    if (const auto* integer = std::get_if<std::int64_t>(&given)) {
      number = static_cast<double>(*integer);
    } else if (const auto* fraction = std::get_if<double>(&given)) {
      number = *fraction;
    } else {
      return std::nullopt;
    }
    if (std::isnan(number) || !within(reals, number)) return std::nullopt;
    return number;
  }
  // The alternatives of target and value stand in the same order.
  if (given.index() != target.index()) return std::nullopt;
  if (const auto* integer = std::get_if<std::int64_t>(&given)) {
    if (!within(integers, *integer)) return std::nullopt;
  }
  if (const auto* text = std::get_if<std::string>(&given)) {
    const bool any = choices.empty();
    if (!any && std::find(choices.begin(), choices.end(), *text) == choices.end()) {
      return std::nullopt;
    }
  }
  return given;
}

std::string ConfigKey::expectation() const {
  if (std::holds_alternative<std::int64_t*>(target)) return "an integer" + bounds(integers);
  if (std::holds_alternative<double*>(target)) return "a number" + bounds(reals);
  if (std::holds_alternative<bool*>(target)) return "true or false";
  if (choices.empty()) return "text in quotes";
  std::string names;
  for (const std::string& choice : choices)
    names += (names.empty() ? "" : ", ") + toml_quoted(choice);
  return "one of " + names;
}

std::string ConfigKey::variable() const {
  std::string text = "YOKE_";
  for (const char letter : name) {
    const bool small = letter >= 'a' && letter <= 'z';
    text += letter == '.' ? '_' : small ? static_cast<char>(letter - 'a' + 'A') : letter;
  }
  return text;
}

}  // namespace yoke::detail
