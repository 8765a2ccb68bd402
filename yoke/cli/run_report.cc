#include "yoke/cli/run_report.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/cli/command_line.h"

namespace yoke::cli {
namespace {

std::string formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string row(const std::string& name, const std::string& value) {
  constexpr std::size_t kWidth = 18;
  return cat("  ", name, std::string(name.size() < kWidth ? kWidth - name.size() : 1, ' '), value,
             '\n');
}

std::string indented(const std::string& text) {
  std::string result = "    ";
  for (char letter : text) {
    result += letter;
    if (letter == '\n') result += "    ";
  }
  return result;
}

/// As short as a person would type it: the name of what lies under runs/.
std::string short_name(const RunFolder& folder) {
  auto plain = folder.root().filename().string();
  return RunFolder::named(plain).root() == folder.root() ? plain : folder.root().string();
}

}  // namespace

nlohmann::json read_report(const RunFolder& folder) {
  try {
    return nlohmann::json::parse(read_file(folder.report()));
  } catch (const nlohmann::json::exception& error) {
    throw DataError(cat(folder.report().string(), " is damaged: ", error.what(), '.'));
  }
}

std::string metric_text(const std::string& name, double value) {
  if (name.find("accuracy") != std::string::npos) return formatted("%.2f %%", 100 * value);
  return formatted(value == std::floor(value) && std::abs(value) < 1e15 ? "%.0f" : "%.4f", value);
}

std::string to_text(const nlohmann::json& report, const RunFolder& folder,
                    const std::string& command) {
  auto status = report.value("status", "");
  auto steps = report.value("steps", std::int64_t{0});
  auto name = short_name(folder);
  std::string text = cat(
      name, ": ", status, " after ", steps, " steps, ", report.value("samples", std::int64_t{0}),
      " samples (", formatted("%.1f", report.value("seconds", 0.0)), " s, ",
      formatted("%.0f", report.value("samples_per_second", 0.0)), " samples/s)\n");
  const auto metrics = report.value("metrics", nlohmann::json::object());
  for (const auto& [metric, value] : metrics.items()) {
    if (!value.is_number()) continue;
    text += row(metric, metric_text(metric, value));
  }
  text += row("state_sha256", report.value("state_sha256", ""));
  text += row("folder", folder.root().string());
  if (auto sample = report.value("sample", ""); !sample.empty()) {
    text += cat("  The model writes:\n", indented(sample), '\n');
  }
  // The program as it was typed: it need not lie in PATH.
  const auto program = command.substr(0, command.find(' '));
  const auto run = as_typed({name});
  const auto ask = cat("  ", program, " eval ", run, "\n  ", program, " hash ", run, " --json\n");
  if (status == "finished") {
    text += cat("Try:\n", ask, "  ", program, " replay ", run, " --step 0 --micro-batch 0\n");
  } else {
    text += cat("Try:\n  ", command, "      continues\n", ask);
  }
  return text;
}

}  // namespace yoke::cli
