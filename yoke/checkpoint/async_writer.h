#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/fault.h"
#include "yoke/base/run_folder.h"
#include "yoke/checkpoint/attempt.h"
#include "yoke/checkpoint/snapshot.h"

namespace yoke::checkpoint {

/// A snapshot with memory of its own: one block, which is used again by the next copy of a state of
/// the same size.
class SnapshotCopy {
 public:
  /// Copies all tensors. Costs one pass over the state.
  void take(const Snapshot& snapshot);
  /// Views of this object's memory.
  const Snapshot& snapshot() const { return snapshot_; }
  std::size_t bytes() const { return memory_.size(); }

 private:
  std::vector<std::byte> memory_;
  Snapshot snapshot_;
};

/// What became of a save.
struct SaveOutcome {
  enum class Kind { kCommitted, kAbandoned, kFenced };
  std::int64_t step = 0;
  Kind kind = Kind::kCommitted;
  std::string message{};  ///< why it did not commit
  Seconds seconds{0};     ///< from the copy to the end
};

/// Writes checkpoints while training goes on: save() returns when the state is copied, and a thread
/// of its own (`yoke-save`) does what checkpoint::write does, with the same steps, fault points and
/// fence. At most one is in flight, so that a run needs memory for one more state and no more
/// (copy_bytes()).
///
/// A save that fails (a full disk) is abandoned: it is a warning in the log and an outcome, what
/// was written of it is removed, the checkpoints before it stay, and the next save tries anew. None
/// of it is an exception, since training can go on.
///
/// save, try_save, finish and outcomes are for one thread, the trainer's.
class AsyncWriter {
 public:
  /// `faults` is this writer's own copy: only its points checkpoint.1 to checkpoint.7 are reached.
  explicit AsyncWriter(RunFolder folder, FaultPlan faults = {});
  /// Waits as finish() does.
  ~AsyncWriter();
  AsyncWriter(const AsyncWriter&) = delete;
  AsyncWriter& operator=(const AsyncWriter&) = delete;

  /// Copies the state and returns. If the save before is still in flight it waits for it first,
  /// which counts as back-pressure: the disk is slower than the interval between checkpoints.
  void save(const Snapshot& snapshot, nlohmann::json extra, WriteOptions options);
  /// The same, but where it would wait it does nothing and returns false.
  bool try_save(const Snapshot& snapshot, nlohmann::json extra, WriteOptions options);
  /// Until nothing is in flight. Before a run ends, and before anything reads the newest state.
  void finish();

  bool in_flight() const;
  /// Of the saves that have ended since the last call, in their order.
  std::vector<SaveOutcome> outcomes();

  struct Counters {
    std::int64_t saves = 0;  ///< that were begun
    std::int64_t waits = 0;  ///< saves that found another in flight, and those put off
    Seconds waited{0};       ///< in save(), for the one before
    Seconds copied{0};       ///< in save(), for the copy
  };
  Counters counters() const { return counters_; }
  std::size_t copy_bytes() const { return copy_.bytes(); }

 private:
  void run();
  SaveOutcome write_one();

  const RunFolder folder_;
  FaultPlan faults_;  ///< the thread's, as are these three while a save is in flight:
  SnapshotCopy copy_;
  nlohmann::json extra_;
  WriteOptions options_;
  Counters counters_;  ///< the trainer's

  mutable std::mutex mutex_;  ///< guards the rest
  std::condition_variable changed_;
  bool in_flight_ = false;
  bool closing_ = false;
  std::vector<SaveOutcome> outcomes_;
  std::thread thread_;  ///< started by the first save, joined by the destructor
};

}  // namespace yoke::checkpoint
