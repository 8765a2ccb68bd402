#include "yoke/base/log.h"

#include <pthread.h>
#include <spdlog/common.h>
#include <spdlog/details/log_msg.h>
#include <spdlog/pattern_formatter.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <optional>

#include "yoke/base/error.h"
#include "yoke/base/terminal.h"

namespace yoke {
namespace {

constexpr std::string_view kNames[] = {"debug", "info", "warning", "error"};
constexpr std::string_view kColors[] = {"\033[2m", "", "\033[33m", "\033[31m"};
constexpr std::string_view kReset = "\033[0m";
constexpr std::string_view kClearLine = "\r\033[K";

std::optional<LogLevel> level_named(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == name) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

/// What a process needs to write its log lines. It uses spdlog's formatter and none of its sinks or
/// its registry: those hold a lock while they write, and a worker forked at that moment would wait
/// for ever.
class Log {
 public:
  Log() : formatter_("%Y-%m-%dT%H:%M:%S.%eZ %v", spdlog::pattern_time_type::utc) {
    const char* wish = std::getenv("YOKE_LOG");
    if (wish == nullptr || *wish == '\0') return;
    if (const auto level = level_named(wish)) {
      level_ = *level;
    } else {
      write(LogLevel::kWarning, cat("YOKE_LOG=", wish,
                                    " is no log level; info is used. Set it to debug, info, "
                                    "warning or error."));
    }
  }

  bool shows(LogLevel level) const { return level >= level_.load(std::memory_order_relaxed); }
  void set_level(LogLevel level) { level_.store(level, std::memory_order_relaxed); }
  void set_prefix(std::string prefix) {
    const std::lock_guard lock(mutex_);
    prefix_ = std::move(prefix);
  }

  void write(LogLevel level, std::string_view text) {
    spdlog::memory_buf_t line;
    // A progress line may stand there unfinished; it is drawn again after this one.
    if (can_redraw(STDERR_FILENO)) line.append(kClearLine);
    {
      const std::lock_guard lock(mutex_);
      const std::string body = body_of(level, text);
      formatter_.format(spdlog::details::log_msg("", spdlog::level::info, body), line);
    }
    // One write, so that the lines of several processes do not mix. A log that cannot be written
    // has nowhere to say so.
    std::size_t written = 0;
    while (written < line.size()) {
      const ssize_t count = ::write(STDERR_FILENO, line.data() + written, line.size() - written);
      if (count < 0 && errno != EINTR) return;
      if (count > 0) written += static_cast<std::size_t>(count);
    }
  }

  std::mutex& mutex() { return mutex_; }

 private:
  std::string body_of(LogLevel level, std::string_view text) const {
    const auto index = static_cast<std::size_t>(level);
    const bool color = wants_color(STDERR_FILENO) && !kColors[index].empty();
    std::string body;
    if (color) body += kColors[index];
    body += kNames[index];
    body += ' ';
    if (!prefix_.empty()) body += cat("[", prefix_, "] ");
    for (const char letter : text) {
      body += letter;
      // What follows a line break must not look like a line of its own.
      if (letter == '\n') body += "    ";
    }
    if (color) body += kReset;
    return body;
  }

  std::atomic<LogLevel> level_{LogLevel::kInfo};
  std::mutex mutex_;  ///< guards formatter_ and prefix_; never held while writing
  spdlog::pattern_formatter formatter_;
  std::string prefix_;
};

// stderr is one for the whole process, and so is its log. Never destroyed: threads may log until
// the end.
Log& process_log() {
  static Log& log = []() -> Log& {
    alignas(Log) static unsigned char place[sizeof(Log)];
    Log& made = *new (place) Log;
    // A child forked while another thread formats a line gets the mutex free.
    pthread_atfork([] { process_log().mutex().lock(); }, [] { process_log().mutex().unlock(); },
                   [] { process_log().mutex().unlock(); });
    return made;
  }();
  return log;
}

}  // namespace

void log(LogLevel level, std::string_view text) {
  Log& log = process_log();
  if (log.shows(level)) log.write(level, text);
}

void set_log_prefix(std::string prefix) {
  process_log().set_prefix(std::move(prefix));
}

void set_log_level(std::string_view name) {
  const auto level = level_named(name);
  if (!level) {
    throw ConfigError(cat("unknown log level \"", name, "\"; use debug, info, warning or error."));
  }
  process_log().set_level(*level);
}

}  // namespace yoke
