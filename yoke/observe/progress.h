#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "yoke/base/clock.h"

namespace yoke {

/// The progress of a run on stderr. On a terminal: one line, redrawn at most ten times a second. Elsewhere: a plain
/// line every few seconds, and the last one. Only rank 0 has one.
class Progress {
 public:
  enum class Style { kBar, kPlain, kJson, kNone };
  /// "auto" looks at isatty(2) and TERM; else "bar", "plain", "json", "none". Throws ConfigError.
  static Style style_from(const std::string& name);

  Progress(Style style, std::int64_t total_steps, std::int64_t first_step);
  ~Progress();  ///< ends the redrawn line

  struct Point {
    std::int64_t step = 0;  ///< steps done
    double loss = 0;
    double lr = 0;
    double samples_per_second = 0;
    std::string evaluation;  ///< "accuracy 97.2 %", shown until the next
  };
  void show(const Point& point);
  /// A line of its own above the redrawn one.
  void say(const std::string& line);

 private:
  Style style_;
  std::int64_t total_;
  std::int64_t first_;
  Clock::time_point started_;
  Clock::time_point last_shown_{};
  std::string last_line_;
};

}  // namespace yoke
