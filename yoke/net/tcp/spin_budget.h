#pragma once

#include <algorithm>
#include <chrono>

#include "yoke/base/clock.h"

namespace yoke::net {

/// How long to look at the sockets again and again before sleeping in poll(). Worth it only where
/// the peers run on other cores at this moment, which no setting tells: so each attempt that found
/// nothing halves the time, and each that found something doubles it. Once it is down to nothing, a
/// short attempt is made every now and then.
///
/// Measured, 8 bytes there and back over the loopback: with both ranks on one busy core 15 us by
/// poll(), 115 us by spinning for 50 us each time.
class SpinBudget {
 public:
  /// `allowed`: false where there are more ranks than cores, so that the other one can only run if
  /// this one sleeps.
  explicit SpinBudget(bool allowed) : allowed_(allowed) {}

  /// The time for the wait that begins now.
  Clock::duration begin() {
    ++waits_;
    probing_ = allowed_ && budget_ == Clock::duration::zero() && waits_ % kProbeEvery == 0;
    return !allowed_ ? Clock::duration::zero() : probing_ ? kProbe : budget_;
  }
  void found() {
    budget_ = std::clamp(budget_ * 2,
                         allowed_ && (probing_ || budget_ > kNothing) ? kProbe : kNothing, kMost);
  }
  void found_nothing() { budget_ = budget_ / 2 < kLeast ? kNothing : budget_ / 2; }

 private:
  using us = std::chrono::microseconds;
  static constexpr int kProbeEvery = 64;
  static constexpr Clock::duration kNothing{0}, kLeast = us(5), kProbe = us(10), kMost = us(50);

  const bool allowed_;
  bool probing_ = false;
  int waits_ = 0;
  Clock::duration budget_ = kMost;
};

}  // namespace yoke::net
