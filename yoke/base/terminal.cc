#include "yoke/base/terminal.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace yoke {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

bool is_on(const char* name) {
  return !variable(name).empty() && variable(name) != "0";
}

}  // namespace

bool can_redraw(int descriptor) {
  return !variable("TERM").empty() && variable("TERM") != "dumb" && ::isatty(descriptor) == 1;
}

bool wants_color(int descriptor) {
  if (!variable("NO_COLOR").empty()) return false;
  if (is_on("CLICOLOR_FORCE") || is_on("FORCE_COLOR")) return true;
  return variable("TERM") != "dumb" && ::isatty(descriptor) == 1;
}

}  // namespace yoke
