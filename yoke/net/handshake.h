#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "yoke/net/socket.h"
#include "yoke/net/wire.h"

namespace yoke::net {

/// Who connects, and for what.
struct Identity {
  std::string job;
  std::string purpose;  ///< "store", "tcp/world": connections for different ends never mix
  std::uint64_t generation = 0;
  int rank = 0;
  int size = 1;
};

/// How long a connection may take to prove itself. A stranger that says nothing is dropped after
/// it; the others are served meanwhile.
inline constexpr auto kHandshakeLimit = std::chrono::seconds(5);

/// `token`, or where it is empty one made from the job's name: that protects from accidents, not
/// from attackers on the same network. yoke's launcher always sets a random one.
std::string token_of(const std::string& token, const std::string& job);

/// One side of the greeting on a fresh connection, without ever blocking. Both sides prove that
/// they know the token over nonces of both, so that nothing recorded earlier is worth anything:
///
///   caller -> acceptor   hello    generation, rank, size, nonce, keyed digest of job and purpose
///   acceptor -> caller   answer   verdict, the same of its own, HMAC over both greetings
///   caller -> acceptor   proof    HMAC over both greetings, other label
///   acceptor -> caller   welcome  verdict
///
/// The caller of another job or purpose is told so without a proof, and may look elsewhere.
class Handshake {
 public:
  enum class State { kRunning, kAccepted, kRefused };

  static Handshake call(Descriptor socket, const Identity& self, std::string token,
                        std::uint8_t channel = 0);
  static Handshake answer(Descriptor socket, const Identity& self, std::string token);

  /// Goes on as far as the socket lets it.
  State advance();
  State state() const { return state_; }
  /// What to poll() the socket for.
  short events() const;
  int descriptor() const { return socket_.number(); }

  // After kAccepted:
  int peer() const { return theirs_.rank; }
  std::uint8_t channel() const { return channel_; }
  Descriptor take_socket() { return std::move(socket_); }

  // After kRefused:
  /// "127.0.0.1:4000 does not know the token of job 'x'".
  const std::string& why() const { return why_; }
  /// What the acceptor, here or there, made of the caller. kAccepted when the connection broke
  /// before that.
  Verdict verdict() const { return verdict_; }
  /// The caller could not even connect, or was hung up on before the first word.
  bool unreachable() const { return unreachable_; }
  std::uint64_t peer_generation() const { return theirs_.generation; }

  bool expired() const { return deadline_.passed(); }
  Deadline deadline() const { return deadline_; }

 private:
  Handshake(Descriptor socket, const Identity& self, std::string token, std::uint8_t channel,
            bool caller);
  void say(const Greeting& greeting);
  void hear(const Greeting& greeting);
  void judge_hello();
  Verdict verdict_on(const Greeting& hello) const;
  std::array<std::byte, 32> proof(bool of_caller) const;
  void refuse(std::string why);
  std::string other_side() const;

  Descriptor socket_;
  Identity self_;
  std::string token_;
  bool caller_;
  std::uint8_t channel_;
  Deadline deadline_ = Deadline::after(kHandshakeLimit);
  State state_ = State::kRunning;
  Verdict verdict_ = Verdict::kAccepted;
  bool unreachable_ = false;
  std::string why_;

  Greeting ours_, theirs_;  ///< the hello and the answer, from this side's view
  GreetingKind expected_ = GreetingKind::kHello;
  GreetingBytes out_{}, in_{};
  std::size_t out_left_ = 0, in_got_ = 0;
  State after_saying_ = State::kRunning;
};

/// Logs connections that were refused: the first ten each, then only how many there have been, ever
/// more rarely, so that strangers cannot fill a disk with our log.
class RefusalLog {
 public:
  /// `where`: "the store", "rank 3".
  explicit RefusalLog(std::string where) : where_(std::move(where)) {}
  void refused(const std::string& why);

 private:
  std::string where_;
  std::uint64_t count_ = 0;
};

}  // namespace yoke::net
