#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "yoke/base/clock.h"

namespace yoke::elastic {

/// How a worker came to its end, as its agent saw it.
struct WorkerEnd {
  int exit_code = 0;  ///< 128 + signal when a signal killed it
  int signal = 0;
  bool stopped = false;        ///< SIGSTOP held it
  bool dying = false;          ///< when it was declared dead, it was being killed by something else
  bool out_of_memory = false;  ///< the kernel had just killed something for want of memory
};

/// Which budget an end is charged to.
enum class Charge : std::uint8_t {
  kNothing,         ///< content, preempted, dismissed: free
  kInfrastructure,  ///< killed, hung, cut off: tried again, with back-off, while there is progress
  kMemory,          ///< tried again once
  kUser,            ///< an exception of the user's: twice at one step is enough
  kFinal,           ///< bad data or configuration: the same would happen again
};

Charge charge_of(const WorkerEnd& end);

/// What to do about a worker that failed.
struct Ruling {
  bool restart = false;
  Clock::duration after{};  ///< back-off
  int exit_code = 0;        ///< of the run, if not
  std::string why = {};     ///< and why not
};

/// Restart budgets by cause (reference: restart policy). Progress is a completed step; what has
/// failed before it does not count against a later failure.
class Budget {
 public:
  /// `restarts`: failures in a row without a step between them, that are answered by a new worker;
  /// 0: the first failure ends the run.
  explicit Budget(int restarts) : restarts_(restarts) {}

  /// A step was completed since the last failure.
  void made_progress() { in_a_row_ = 0; }
  /// A step was completed before the last failure, which was counted before that was known.
  void had_made_progress() { in_a_row_ = std::min(in_a_row_, 1); }
  Ruling failed(const WorkerEnd& end, std::int64_t at_step);
  /// All ranks met in a generation that broke without anyone's end.
  Ruling broke();

 private:
  Ruling again();

  int restarts_;
  int in_a_row_ = 0;  ///< failures since the last step
  std::optional<std::int64_t> user_failed_at_;
  int user_exit_code_ = 0;
  bool memory_failed_ = false;
};

}  // namespace yoke::elastic
