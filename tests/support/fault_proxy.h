#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/faulty_path.h"
#include "yoke/net/socket.h"

namespace yoke::test {

/// From the caller to the target, and back.
enum class Direction { kThere = 0, kBack = 1 };

/// Stands between two TCP peers and does to their bytes what a bad network does: listens on a free
/// port of 127.0.0.1, and passes every connection on to the target. What is random is drawn by
/// Philox from (seed, number of the connection, direction, position): two proxies with one seed
/// damage the same bytes.
///
/// What it cannot do, since both ends have a healthy connection to this proxy: bytes are
/// acknowledged even where they are swallowed (only `stopped` makes TCP_USER_TIMEOUT count), and
/// nothing is lost, repeated or reordered below TCP (see PathFaults::loss). For that there are
/// network namespaces.
///
/// One thread, "fault proxy", in poll. Every call is thread-safe and holds from its return on.
/// Settings count for connections that are there and those to come. The destructor resets what is
/// open and leaves nothing.
class FaultProxy {
 public:
  /// `target`: "127.0.0.1:4000". Throws CommunicationError.
  FaultProxy(const std::string& target, std::uint64_t seed);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  /// "127.0.0.1:PORT": where callers connect instead.
  const std::string& address() const { return address_; }

  void set(Direction direction, const PathFaults& faults);
  /// Changes one thing and leaves the others.
  void change(Direction direction, const std::function<void(PathFaults&)>& edit);
  /// Flips a bit of the next byte of every connection that is open.
  void flip_next(Direction direction);
  /// Resets every connection that is open, at both ends, now.
  void reset();

  /// Of connection `number`, in the order in which they came.
  struct Tally {
    std::uint64_t passed = 0, swallowed = 0;
    std::vector<std::uint64_t> flipped{};  ///< positions
  };
  Tally tally(Direction direction, std::size_t number) const;
  std::size_t connections() const;  ///< that came so far

 private:
  struct Connection;

  void run();
  void accept_all();
  /// Moves what can move; the soonest time at which more can.
  Clock::time_point advance(Connection& connection, Clock::time_point now);
  void advance(Connection& connection, Direction direction, Clock::time_point now);
  void poll_for(Connection& connection, Clock::time_point now);
  void close(Connection& connection, bool by_reset);
  void wake() const;

  const std::uint64_t seed_;
  net::Address target_;
  net::Descriptor listening_;
  std::string address_;
  net::Descriptor wake_;

  mutable std::mutex mutex_;  ///< guards all below
  PathFaults faults_[2];
  std::list<Connection> connections_;  ///< those that are closed too, for their tallies
  std::vector<pollfd> polled_;         ///< the thread's own
  bool ends_ = false;

  std::thread thread_;
};

}  // namespace yoke::test
