#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "yoke/elastic/section.h"
#include "yoke/net/world.h"

namespace yoke::elastic {

/// What of the run's state a worker holds when it is ready for a new generation.
struct Standing {
  bool live = false;       ///< it has trained, or copied the state of one that has
  std::int64_t step = -1;  ///< k of the S_k that it holds, if live
};

/// Why a worker's generation broke, as it saw it.
struct Break {
  int lost_rank = -1;  ///< -1: it does not know
  std::string message = {};
};

/// One reason for a new generation, as events.jsonl tells it.
struct Change {
  std::string cause;  ///< start, join, leave, resize, killed, hung, partitioned, oom, user_error,
                      ///< preempted, coordinator
  int rank = -1;      ///< in the generation before, of the worker that it is about; -1: none
  std::string detail = {};
  double detect_ms = 0;  ///< from the last sign of life, or of progress, to the decision
};

/// One generation, for one of its workers.
struct View {
  Place place;           ///< rank, size, generation ...
  std::string store_at;  ///< where the coordinator serves the store of this generation
  std::vector<Change> changes;
  Clock::time_point since;    ///< when the first of the changes was noticed, by this host's clock
  bool anyone_live = false;   ///< some member holds state; rank 0 is one of those with the newest
  std::int64_t reached = -1;  ///< the highest step that any worker of this job has ever completed
};

/// Who takes part in a run, and since when: what the training loop knows of it. One training thread
/// calls; the marks and the two wishes may be read at any time.
class Membership {
 public:
  virtual ~Membership() = default;

  /// Waits until this worker belongs to a new generation. Nothing: it is dismissed, and should end
  /// in good order. Throws CommunicationError when there is no coordinator for too long, and what
  /// ended the only generation where there is but one.
  virtual std::optional<View> next(const Standing& standing, const std::optional<Break>& why) = 0;
  /// The world of a view. Blocks until all its members are there; throws as World::at.
  virtual World enter(const View& view) = 0;
  /// Called from another thread when the coordinator declares the generation over; at once if it
  /// has. An empty function takes the old one back, and returns when it is not running.
  virtual void on_abort(std::function<void(const std::string& reason)> abort) = 0;

  /// All workers leave this generation after the step in flight: someone comes, goes, or has asked.
  virtual bool change_wanted() const = 0;
  /// All stop after the step in flight, and save.
  virtual bool stop_wanted() const = 0;
  /// Waits while this worker's lease has run out: it may have been declared dead, and must not act.
  virtual void hold() = 0;
  /// Whether hold() would not wait: what is about to be put in its place may be.
  virtual bool acts() const = 0;
  /// This worker ends because of an exception, in this step: an end like that twice is the last.
  virtual void failed(std::int64_t step) = 0;
  /// This worker wants to go (a preemption notice); the others are told at the next boundary.
  virtual void leave(const std::string& cause) = 0;
  /// The changes of the newest view are on file; the coordinator need not tell them again.
  virtual void noted() = 0;
  /// The run is finished, or stopped and saved, as far as this worker is concerned.
  virtual void done(bool finished) = 0;
  /// Whether a broken generation is followed by another.
  virtual bool recovers() const = 0;

  SectionMarks& marks() { return marks_; }

 protected:
  SectionMarks marks_;
};

/// The one generation of a job whose launcher knows no other (mpirun, torchrun, srun, threads).
class FixedMembership final : public Membership {
 public:
  explicit FixedMembership(World world) : world_(std::move(world)) {}
  std::optional<View> next(const Standing& standing, const std::optional<Break>& why) override;
  World enter(const View&) override { return world_; }
  void on_abort(std::function<void(const std::string&)>) override {}
  bool change_wanted() const override { return false; }
  bool stop_wanted() const override { return false; }
  void hold() override {}
  bool acts() const override { return true; }
  void failed(std::int64_t) override {}
  void leave(const std::string&) override {}
  void noted() override {}
  void done(bool) override {}
  bool recovers() const override { return false; }

 private:
  World world_;
};

}  // namespace yoke::elastic
