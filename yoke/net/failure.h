#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace yoke::net {

/// Why a group of ranks cannot go on, as a value: it can be kept, thrown again from any thread, and
/// handed to other ranks, which an exception cannot.
struct Failure {
  enum class Kind : std::uint8_t {
    kAborted = 1,
    kPeerLost = 2,
    kTimeout = 3,
    kMismatch = 4,
    kOther = 5
  };

  Kind kind = Kind::kOther;
  int rank = -1;                 ///< of kPeerLost and kMismatch
  std::uint64_t generation = 0;  ///< of kAborted
  std::vector<int> missing{};    ///< of kTimeout
  std::string operation{};       ///< of kTimeout
  std::string message{};

  /// Throws Aborted, PeerLost, Timeout, CollectiveMismatch, or CommunicationError for kOther.
  [[noreturn]] void raise() const;

  /// The inverse of raise(); any other exception is kOther with its text.
  static Failure of(const std::exception& error);
};

}  // namespace yoke::net
