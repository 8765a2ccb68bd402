#include "yoke/checkpoint/interval.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>

#include "yoke/base/error.h"
#include "yoke/base/files.h"

namespace yoke::checkpoint {

namespace {

/// Seconds since 1970 of what utc_now() writes.
std::optional<double> seconds_of(const std::string& time) {
  std::tm parts{};
  double seconds = 0;
  if (std::sscanf(time.c_str(), "%d-%d-%dT%d:%d:%lfZ", &parts.tm_year, &parts.tm_mon,
                  &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &seconds) != 6)
    return std::nullopt;
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return static_cast<double>(::timegm(&parts)) + seconds;
}

bool is_failure(const std::string& cause) {
  constexpr std::array kFailures = {"killed", "hung", "partitioned", "oom", "coordinator"};
  return std::ranges::find(kFailures, cause) != kFailures.end();
}

}  // namespace

Seconds best_interval(Seconds cost, Seconds mean_time) {
  YOKE_ENSURE(cost.count() > 0 && mean_time.count() > 0, "cost ", cost.count(), " s, mean time ",
              mean_time.count(), " s");
  return Seconds(std::sqrt(2 * cost.count() * mean_time.count()));
}

double expected_waste(Seconds cost, Seconds interval, Seconds mean_time) {
  return cost / interval + interval / (2 * mean_time);
}

Seconds mean_time_between_failures(const std::filesystem::path& events) {
  std::error_code error;
  if (!std::filesystem::exists(events, error)) return kUnknownMeanTime;
  std::istringstream lines(read_file(events));
  std::optional<double> before;
  double ran = 0;
  int failures = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line, nullptr, false);
    if (!event.is_object() || !event.contains("cause") || !event["cause"].is_string() ||
        !event.contains("time") || !event["time"].is_string())
      continue;
    const std::string cause = event["cause"];
    const auto time = seconds_of(event["time"]);
    if (!time) continue;
    // Clocks may be set back; that is no time that was run.
    if (before && cause != "start") ran += std::max(0.0, *time - *before);
    failures += is_failure(cause) ? 1 : 0;
    before = time;
  }
  if (failures == 0) return kUnknownMeanTime;
  return Seconds(std::max(ran / failures, 1.0));
}

}  // namespace yoke::checkpoint
