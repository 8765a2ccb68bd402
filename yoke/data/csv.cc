#include "yoke/data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "yoke/base/error.h"

namespace yoke::data {
namespace {

constexpr double kMostLabel = 65'535;

std::string_view trimmed(std::string_view text) {
  auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::optional<double> number_in(std::string_view field) {
  if (field.starts_with('+')) field.remove_prefix(1);
  double value = 0;
  auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size() || !std::isfinite(value))
    return {};
  return value;
}

void split(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  for (;;) {
    auto comma = line.find(',');
    fields.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

bool is_header(const std::vector<std::string_view>& fields) {
  return !number_in(fields.back()) || std::none_of(fields.begin(), fields.end(), number_in);
}

/// A field as it can be shown in one line of a message.
std::string shown(std::string_view field) {
  std::string text;
  for (char c : field.substr(0, 40))
    text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return cat('"', text, field.size() > 40 ? "...\"" : "\"");
}

}  // namespace

TableContent parse_csv(std::string_view content, const std::string& name, double scale) {
  if (content.starts_with("\xef\xbb\xbf")) content.remove_prefix(3);
  std::vector<float> inputs;
  std::vector<std::int64_t> labels;
  std::vector<std::string_view> fields;
  std::size_t columns = 0, line_of_columns = 0;
  bool header_seen = false;
  for (std::size_t line_number = 1; !content.empty(); ++line_number) {
    auto end = std::min(content.find('\n'), content.size());
    std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (trimmed(line).empty()) continue;
    split(line, fields);
    if (columns == 0) {
      columns = fields.size();
      line_of_columns = line_number;
      if (columns < 2) {
        throw DataError(cat(name, ":", line_number,
                            ": a row needs values and a label, separated by commas; found ",
                            shown(line), "."));
      }
    }
    if (fields.size() != columns) {
      throw DataError(cat(name, ":", line_number, ": ", columns, " fields expected, as in line ",
                          line_of_columns, ", and ", fields.size(), " found."));
    }
    if (!header_seen && labels.empty() && is_header(fields)) {
      header_seen = true;
      continue;
    }
    for (std::size_t column = 0; column < columns; ++column) {
      auto number = number_in(fields[column]);
      if (!number) {
        throw DataError(cat(name, ":", line_number, ": column ", column + 1,
                            ": a number expected, and ", shown(fields[column]), " found."));
      }
      if (column + 1 < columns) {
        inputs.push_back(static_cast<float>(*number * scale));
      } else if (*number < 0 || *number > kMostLabel || *number != std::floor(*number)) {
        throw DataError(cat(
            name, ":", line_number, ": column ", column + 1, ": a label (an integer from 0 to ",
            kMostLabel, ") expected in the last column, and ", shown(fields[column]), " found."));
      } else {
        labels.push_back(static_cast<std::int64_t>(*number));
      }
    }
  }
  if (labels.empty()) {
    throw DataError(cat(name, ": no row of numbers; the file is empty",
                        header_seen ? " but for its header." : "."));
  }
  return {.shape = {static_cast<std::int64_t>(columns) - 1},
          .inputs = std::move(inputs),
          .labels = std::move(labels)};
}

}  // namespace yoke::data
