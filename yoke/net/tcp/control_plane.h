#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "yoke/net/failure.h"
#include "yoke/net/socket.h"
#include "yoke/net/wire.h"

namespace yoke::net {

/// What a rank says of itself while it is in a call.
struct Standing {
  CallTag tag;
  std::vector<std::int32_t> awaited;  ///< the ranks that it waits for
};

/// The control connections to all peers: who is alive, who has left, who has failed and why. One
/// caller at a time for everything but fail() and failure(), which may come from any thread.
class ControlPlane {
 public:
  /// `sockets[r]` leads to rank r; the own rank's is empty. A peer whose host does not answer for
  /// `user_timeout` counts as gone (TCP_USER_TIMEOUT and keep-alive).
  ControlPlane(int rank, std::uint64_t generation, std::vector<Descriptor> sockets,
               Clock::duration user_timeout);

  /// Readable when hear() has something to do, or fail() was called.
  int descriptor() const { return epoll_.number(); }

  /// Handles what has arrived, without blocking. A ping is answered with what `standing` gives. A
  /// peer that is gone without a goodbye, or that tells of a failure, sets failure().
  void hear(const std::function<Standing()>& standing);

  /// The first failure that was seen here, told by a peer, or given to fail().
  std::optional<Failure> failure() const;
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  /// Records the failure unless there is one already, and tells all peers, once. Returns the one
  /// that counts.
  Failure fail(const Failure& failure);

  bool has_left(int peer) const { return peers_[index(peer)].left; }
  /// Asks all peers where they stand; answers to earlier pings are forgotten.
  void ping();
  /// What the peer has answered, if it has.
  const std::optional<Standing>& answer(int peer) const { return peers_[index(peer)].answer; }
  /// Says goodbye to all, unless something failed, and ends the sending side.
  void leave();

 private:
  struct Peer {
    Descriptor socket;
    std::vector<std::byte> in;
    bool left = false;
    bool closed = false;
    std::optional<Standing> answer;
  };

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  void read(int rank, Peer& peer, const std::function<Standing()>& standing);
  void handle(int rank, Peer& peer, const FrameHeader& header, std::span<const std::byte> payload,
              const std::function<Standing()>& standing);
  void lose(int rank, Peer& peer, const std::string& why);
  void record(const Failure& failure);
  void send(Peer& peer, FrameKind kind, const CallTag& tag, std::span<const std::byte> payload);
  void send_to_all(FrameKind kind, std::span<const std::byte> payload);

  const int rank_;
  const std::uint64_t generation_;
  Descriptor epoll_, wake_;
  std::vector<Peer> peers_;

  std::mutex sending_;  ///< held while a frame goes out, so that frames never mix
  mutable std::mutex mutex_;
  std::optional<Failure> failure_;   ///< guarded by mutex_
  bool told_ = false;                ///< guarded by mutex_
  std::atomic<bool> failed_{false};  ///< failure_ is set
};

/// The failure that a peer tells of on its control connection, if that is what comes next; nothing
/// is taken from the socket. For the time before there is a ControlPlane.
std::optional<Failure> peek_failure(int peer, int socket);

}  // namespace yoke::net
