#pragma once

#include <string>
#include <string_view>

#include "yoke/base/text.h"

namespace yoke {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

/// Writes one line to stderr: time, level, [rank], text. Thread-safe. The level comes from YOKE_LOG
/// (debug, info, warning, error; default info), colours from NO_COLOR, CLICOLOR_FORCE, TERM and
/// isatty. spdlog does the work, in log.cc alone. A process may fork while other threads log, if it
/// has logged before.
void log(LogLevel level, std::string_view text);

/// The prefix of this process's lines, for example "rank 3". Call once, at start.
void set_log_prefix(std::string prefix);

/// Overrides YOKE_LOG. Throws ConfigError for an unknown name.
void set_log_level(std::string_view name);

template <typename... Parts>
void log_debug(const Parts&... parts) {
  log(LogLevel::kDebug, cat(parts...));
}
template <typename... Parts>
void log_info(const Parts&... parts) {
  log(LogLevel::kInfo, cat(parts...));
}
template <typename... Parts>
void log_warning(const Parts&... parts) {
  log(LogLevel::kWarning, cat(parts...));
}
template <typename... Parts>
void log_error(const Parts&... parts) {
  log(LogLevel::kError, cat(parts...));
}

}  // namespace yoke
