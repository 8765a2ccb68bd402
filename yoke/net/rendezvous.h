#pragma once

#include <memory>
#include <string>

#include "yoke/net/place.h"
#include "yoke/net/store.h"

namespace yoke::net {

struct RendezvousOptions {
  std::string token;               ///< shared secret; empty: derived from the job's name
  Clock::duration timeout = std::chrono::seconds(60);
  int listening_descriptor = -1;   ///< rank 0: a socket that a launcher has bound already; -1: bind one
};

/// Opens the store of a job over TCP. Rank 0 serves it from a thread of its own, the others connect; they
/// may start first, and retry every few milliseconds until the deadline (Timeout names the address).
///
/// Port: the launcher's socket where there is one; else the first free one of master_port+1 ...
/// master_port+32 (the launcher's own store may sit on master_port). A client asks each of these ports for
/// the job's name, so two jobs on one machine never meet.
///
/// A connection proves that it knows the token (HMAC-SHA256 over a nonce of the server, so a recorded
/// hello is worthless); one that does not is refused and logged. The client checks the server likewise.
std::shared_ptr<Store> open_store(const Place& place, const RendezvousOptions& options);

}  // namespace yoke::net
