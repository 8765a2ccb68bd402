#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "yoke/net/place.h"
#include "yoke/net/store.h"

namespace yoke::net {

struct RendezvousOptions {
  std::string token{};  ///< shared secret; empty: derived from the job's name
  Clock::duration timeout = std::chrono::seconds(60);
  int listening_descriptor =
      -1;  ///< rank 0: a socket that a launcher has bound already; -1: bind one
  /// "127.0.0.1:4000": the store is served there by somebody who is no rank (a coordinator), and
  /// every rank connects. Empty: rank 0 serves it.
  std::string served_at{};
  const std::atomic<bool>* cancelled = nullptr;  ///< ends the search for the store when it is true
};

/// Opens the store of a job over TCP. Rank 0 serves it from a thread of its own, the others
/// connect; they may start first, and retry every few milliseconds until the deadline. Returns when
/// all ranks are there, or throws Timeout that names those that are missing. JoinRefused: the job
/// has gone on to a later generation, has another size, or has this rank already.
///
/// Port: the launcher's socket where there is one (taken over, and closed with the store); else the
/// first free one of master_port+1 ... master_port+32 (the launcher's own store may sit on
/// master_port). A client asks each of these ports for the job's name, so two jobs on one machine
/// never meet; master_port itself only where no torchrun or mpirun may own it.
///
/// A connection proves that it knows the token (HMAC-SHA256 over nonces of both sides, so a
/// recorded hello is worthless); one that does not is refused and logged. The client checks the
/// server likewise.
///
/// Destroying the store of rank 0 waits up to 5 s until the others have destroyed theirs (0.5 s
/// when an exception destroys it). A call on a store whose rank 0 is gone throws PeerLost{0}.
/// Thread-safe.
std::shared_ptr<Store> open_store(const Place& place, const RendezvousOptions& options);

}  // namespace yoke::net
