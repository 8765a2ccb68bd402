#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/net/failure.h"
#include "yoke/net/place.h"
#include "yoke/net/shm/peer_watch.h"
#include "yoke/net/shm/region.h"
#include "yoke/net/shm/wait.h"

namespace yoke::net {

/// What a rank waits for, as the group asks while it waits.
class Waiting {
 public:
  virtual ~Waiting() = default;
  virtual bool ready() = 0;
  /// The ranks that keep this one waiting now.
  virtual std::vector<int> missing() = 0;
  /// For messages: "all_reduce #412 of 25000 float32 sum (tree)".
  virtual std::string operation() = 0;
};

/// The ranks of one host under one name: who they are, whether they live, how to wait for them, and
/// the one cause for which all of them give up.
///
/// The first failure that any rank meets is written into shared memory, and every other rank throws
/// the same: a dead, stopped or mismatched rank is named alike on all survivors. fail() may come
/// from any thread; the rest is called by one thread at a time.
class ShmGroup {
 public:
  static constexpr int kMostRanks = 512;

  /// Collective over the ranks of `place`. Throws Timeout (names those that did not come),
  /// PeerLost, ResourceError, IoError, ConfigError for more than kMostRanks.
  static std::shared_ptr<ShmGroup> join(const Place& place, SharedMemory& memory,
                                        const std::string& name, Deadline deadline);
  /// Tells the others that this rank has left: it is no longer watched, and whoever waits for it
  /// gets PeerLost.
  ~ShmGroup();
  ShmGroup(const ShmGroup&) = delete;
  ShmGroup& operator=(const ShmGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::uint64_t generation() const { return generation_; }
  const std::string& name() const { return name_; }

  /// Returns when waiting.ready(). Looks for a while, then sleeps on `signal`, which must change
  /// whenever ready() may become true, in slices of at most 20 ms; between them it looks at the
  /// cause of the group, at the peers' processes and at the deadline. Throws PeerLost, Timeout, or
  /// the cause of the group.
  ///
  /// Timeout names the ranks that really are behind: a missing rank that is itself waiting, alive,
  /// stands for those that it waits for.
  template <typename What>
  void wait(Signal& signal, What& waiting, Deadline deadline) {
    for (int i = 0; i < policy_.pauses; ++i) {
      if (waiting.ready()) return;
      pause_core();
    }
    // On a crowded machine one yield may take many milliseconds, and the deadline is only kept
    // asleep.
    const auto until =
        policy_.yields > 0 ? Clock::now() + WaitPolicy::kYielding : Clock::time_point();
    for (int i = 0; i < policy_.yields && Clock::now() < until; ++i) {
      if (waiting.ready()) return;
      yield_core();
    }
    sleep(signal, waiting, deadline);
  }

  /// Collective: shared memory of the group, zero at first, that rank 0 makes. Returns when all
  /// have opened it, so that any rank may let go of it at once. Names are unique within the group.
  std::shared_ptr<SharedRegion> open_region(SharedMemory& memory, const std::string& name,
                                            std::size_t bytes, Deadline deadline);

  /// Makes `failure` the cause of the group, unless there is one already, and returns the cause.
  Failure fail(const Failure& failure);
  /// Throws the cause, if there is one.
  void check() const;
  bool failed() const;

 private:
  struct Cause;
  struct Member;
  struct Board;

  ShmGroup(const Place& place, const std::string& name, std::shared_ptr<SharedRegion> region);
  static void yield_core();
  Member& member(int rank) const;
  template <typename SignalOf>
  void await_all(const SignalOf& signal_of, std::uint32_t value, const std::string& what,
                 Deadline deadline);
  void sleep(Signal& signal, Waiting& waiting, Deadline deadline);
  void check_peers(Waiting& waiting);
  void announce(const std::vector<int>& missing);
  std::vector<int> behind(const std::vector<int>& missing, Waiting& waiting);
  Failure cause() const;

  const int rank_;
  const int size_;
  const std::uint64_t generation_;
  const std::string name_;
  const WaitPolicy policy_;
  std::shared_ptr<SharedRegion> region_;
  PeerWatch watch_;
  std::uint32_t opened_ = 0;  ///< regions so far
};

}  // namespace yoke::net
