#pragma once

#include <chrono>
#include <string>

namespace yoke {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// A point of the monotonic clock after which a blocking call gives up. Every blocking call of yoke
/// takes one; a default-constructed one has already passed.
class Deadline {
 public:
  Deadline() = default;
  static Deadline after(Clock::duration span) { return Deadline(Clock::now() + span, span); }

  bool passed() const { return Clock::now() >= at_; }
  Clock::time_point at() const { return at_; }
  /// Never negative.
  Clock::duration left() const {
    auto now = Clock::now();
    return now >= at_ ? Clock::duration::zero() : at_ - now;
  }
  /// The span that it was made with, for messages.
  Clock::duration span() const { return span_; }

 private:
  Deadline(Clock::time_point at, Clock::duration span) : at_(at), span_(span) {}
  Clock::time_point at_{};
  Clock::duration span_{};
};

/// Now, as ISO 8601 in UTC with milliseconds: 2026-11-30T18:45:43.120Z.
std::string utc_now();

}  // namespace yoke
