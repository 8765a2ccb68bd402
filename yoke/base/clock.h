#pragma once

#include <atomic>
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
  /// Passes at once when `cancelled` becomes true, from whatever thread; it outlives the deadline.
  /// Waits that sleep see it within kCancelSlice.
  static Deadline after(Clock::duration span, const std::atomic<bool>* cancelled) {
    Deadline deadline = after(span);
    deadline.cancelled_ = cancelled;
    return deadline;
  }
  static constexpr Clock::duration kCancelSlice = std::chrono::milliseconds(20);

  bool passed() const { return is_cancelled() || Clock::now() >= at_; }
  bool can_be_cancelled() const { return cancelled_ != nullptr; }
  Clock::time_point at() const { return at_; }
  /// Never negative.
  Clock::duration left() const {
    if (is_cancelled()) return Clock::duration::zero();
    auto now = Clock::now();
    return now >= at_ ? Clock::duration::zero() : at_ - now;
  }
  /// The span that it was made with, for messages.
  Clock::duration span() const { return span_; }

 private:
  Deadline(Clock::time_point at, Clock::duration span) : at_(at), span_(span) {}
  bool is_cancelled() const {
    return cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed);
  }
  Clock::time_point at_{};
  Clock::duration span_{};
  const std::atomic<bool>* cancelled_ = nullptr;
};

/// Now, as ISO 8601 in UTC with milliseconds: 2026-11-30T18:45:43.120Z.
std::string utc_now();

}  // namespace yoke
