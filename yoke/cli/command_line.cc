#include "yoke/cli/command_line.h"

#include <unistd.h>

#include <array>

namespace yoke::cli {
namespace {

std::string quoted(const std::string& word) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:@%+";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (char letter : word) {
    if (letter == '\'') {
      text += "'\\''";
    } else {
      text += letter;
    }
  }
  return text + "'";
}

}  // namespace

std::string as_typed(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) {
    if (!text.empty()) text += ' ';
    text += quoted(word);
  }
  return text;
}

std::string command_to_resume(const std::vector<std::string>& words) {
  std::vector<std::string> kept;
  for (const auto& word : words) {
    if (word != "--fresh") kept.push_back(word);
  }
  return as_typed(kept);
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

}  // namespace yoke::cli
