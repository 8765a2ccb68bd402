#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "yoke/base/clock.h"

namespace yoke {

/// The progress of a run on stderr. On a terminal: one line, redrawn at most ten times a second.
/// Elsewhere: a plain line every five seconds, or a JSON object every second, and the last one.
/// Only rank 0 has one. Not thread-safe.
class Progress {
 public:
  enum class Style { kBar, kPlain, kJson, kNone };
  /// "auto" looks at isatty(2) and TERM; else "bar", "plain", "json", "none". Throws ConfigError.
  static Style style_from(const std::string& name);

  Progress(Style style, std::int64_t total_steps, std::int64_t first_step);
  ~Progress();  ///< shows what was not shown yet and ends the redrawn line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  struct Point {
    std::int64_t step = 0;  ///< steps done
    double loss = 0;
    double lr = 0;
    double samples_per_second = 0;
    std::string evaluation;  ///< "accuracy 97.2 %", shown until the next
  };
  /// Points with an evaluation and the last step are shown at once, whatever the time.
  void show(const Point& point);
  /// A line of its own above the redrawn one; with kJson, {"message": line}.
  void say(const std::string& line);

 private:
  void present(const Point& point);
  std::optional<double> seconds_left(std::int64_t step) const;
  std::string text(const Point& point) const;
  std::string json(const Point& point) const;
  void redraw(const Point& point);

  Style style_;
  std::int64_t total_;
  std::int64_t first_;         ///< the step that the time left is reckoned from
  Clock::time_point started_;  ///< when it was done
  Clock::time_point last_shown_{};
  bool shown_ = false;
  std::optional<Point> waiting_;  ///< the newest point, if it came too early to be shown
  std::string evaluation_;
  std::string line_;  ///< the redrawn line, empty if there is none
};

}  // namespace yoke
