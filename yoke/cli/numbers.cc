#include "yoke/cli/numbers.h"

#include <charconv>
#include <string>

#include "yoke/base/text.h"

namespace yoke::cli {
namespace {

/// All of `text` as a number.
template <typename Number>
bool reads(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end;
}

}  // namespace

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  auto check = [least, most](const std::string& text) -> std::string {
    std::int64_t number = 0;
    bool decimal = reads(text, number) && text == std::to_string(number);
    if (decimal && number >= least && number <= most) return {};
    auto range = most == std::numeric_limits<std::int64_t>::max()
                     ? cat("of at least ", least)
                     : cat("from ", least, " to ", most);
    return cat("must be a whole number ", range, ", and is \"", text, "\"");
  };
  return CLI::Validator(check, "");
}

CLI::Validator seconds() {
  auto check = [](const std::string& text) -> std::string {
    constexpr double kDay = 86400;
    double number = -1;
    if (reads(text, number) && number >= 0 && number <= kDay) return {};
    return cat("must be a number of seconds from 0 to 86400, and is \"", text, "\"");
  };
  return CLI::Validator(check, "");
}

}  // namespace yoke::cli
