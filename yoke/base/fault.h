#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

/// A fault that was asked for by YOKE_FAULT, for tests of recovery; compiled into release builds
/// too, and loud. Syntax: `kill|stop|hang|throw|flip@rank=2,step=7,point=P`, several separated by
/// `;`. kill: SIGKILL to itself. stop: SIGSTOP to itself. hang: this thread sleeps for ever, the
/// others go on. throw: an exception, as a user's model may throw one. flip: one bit of the
/// gradient that this rank gives to the sum, at before_reduce only. P: in_recovery (of the state of
/// that step), in_compute, before_reduce, in_reduce, after_reduce, in_update, after_update,
/// checkpoint.1 to checkpoint.7.
struct Fault {
  enum class Kind { kKill, kStop, kHang, kThrow, kFlip };
  Kind kind;
  int rank;
  std::int64_t step;
  std::string point;
  std::string text;  ///< as written
};

/// The faults of one rank. Each fires once per run folder: before it acts, its text is appended to
/// `fired` and synced, so that the same command, started again, goes on.
class FaultPlan {
 public:
  FaultPlan() = default;
  /// Throws ConfigError for bad syntax, or a point or kind that does not exist, naming those that
  /// do.
  FaultPlan(std::string_view text, int rank, std::filesystem::path fired);
  /// From YOKE_FAULT; empty when unset.
  static FaultPlan from_environment(int rank, std::filesystem::path fired);

  bool empty() const { return faults_.empty(); }
  /// Kills, stops or holds this process, or throws, if a fault is due here; returns true if a flip
  /// is due: the caller flips one bit of what it holds. A stopped process goes on here after
  /// SIGCONT. Costs a comparison when the plan is empty. Throws IoError, and does nothing else, if
  /// `fired` cannot be written.
  bool reach(std::string_view point, std::int64_t step);

 private:
  std::vector<Fault> faults_;
  std::filesystem::path fired_;
};

}  // namespace yoke
