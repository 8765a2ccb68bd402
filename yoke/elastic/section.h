#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "yoke/base/clock.h"

namespace yoke::elastic {

/// What a worker is doing. Each has a time-out of its own, learned from how long it takes
/// (roster.h): a process that is alive and stuck is found by it, and one that is slow is not.
enum class Section : std::uint8_t {
  kStart,        ///< from the first connection, or a new generation, to the first step
  kData,         ///< reads samples
  kCompute,      ///< forward and backward
  kCommunicate,  ///< in a collective, and the update after it: it may wait for others
  kCheckpoint,
  kEvaluate,
  kWait,  ///< for the coordinator: never judged
};
inline constexpr std::size_t kSections = 7;

std::string_view name_of(Section section);
inline double milliseconds_of(Clock::duration span) {
  return std::chrono::duration<double, std::milli>(span).count();
}
std::optional<Section> section_from(std::string_view name);

/// Where a worker is, marked by its training thread and read by the thread that sends heartbeats.
class SectionMarks {
 public:
  struct Place {
    Section section = Section::kStart;
    std::int64_t step = -1;
    Clock::time_point since;
  };

  void enter(Section section, std::int64_t step) {
    const auto now = Clock::now();
    finish(now);
    section_.store(section, std::memory_order_relaxed);
    step_.store(step, std::memory_order_relaxed);
    since_.store(now.time_since_epoch().count(), std::memory_order_release);
  }
  Place now() const {
    const auto since = since_.load(std::memory_order_acquire);
    return {section_.load(std::memory_order_relaxed), step_.load(std::memory_order_relaxed),
            Clock::time_point(Clock::duration(since))};
  }
  /// The longest completed stay in each section since the last call; zero: none was completed.
  std::array<Clock::duration, kSections> take_longest() {
    std::array<Clock::duration, kSections> all{};
    for (std::size_t i = 0; i < kSections; ++i)
      all[i] = Clock::duration(longest_[i].exchange(0, std::memory_order_relaxed));
    return all;
  }

 private:
  void finish(Clock::time_point now) {
    const auto since = Clock::time_point(Clock::duration(since_.load(std::memory_order_relaxed)));
    auto& longest = longest_[static_cast<std::size_t>(section_.load(std::memory_order_relaxed))];
    const auto span = (now - since).count();
    auto before = longest.load(std::memory_order_relaxed);
    while (before < span &&
           !longest.compare_exchange_weak(before, span, std::memory_order_relaxed)) {
    }
  }

  std::atomic<Section> section_{Section::kStart};
  std::atomic<std::int64_t> step_{-1};
  std::atomic<Clock::rep> since_{Clock::now().time_since_epoch().count()};
  std::array<std::atomic<Clock::rep>, kSections> longest_{};
};

}  // namespace yoke::elastic
