#include "yoke/net/failure.h"

#include "yoke/base/error.h"

namespace yoke::net {

void Failure::raise() const {
  switch (kind) {
    case Kind::kAborted:
      throw Aborted(generation, message);
    case Kind::kPeerLost:
      throw PeerLost(rank, message);
    case Kind::kTimeout:
      throw Timeout(operation, missing, message);
    case Kind::kMismatch:
      throw CollectiveMismatch(rank, message);
    case Kind::kOther:
      break;
  }
  throw CommunicationError(message);
}

Failure Failure::of(const std::exception& error) {
  Failure failure;
  failure.message = error.what();
  if (const auto* aborted = dynamic_cast<const Aborted*>(&error)) {
    failure.kind = Kind::kAborted;
    failure.generation = aborted->generation();
  } else if (const auto* lost = dynamic_cast<const PeerLost*>(&error)) {
    failure.kind = Kind::kPeerLost;
    failure.rank = lost->rank();
  } else if (const auto* timeout = dynamic_cast<const Timeout*>(&error)) {
    failure.kind = Kind::kTimeout;
    failure.operation = timeout->operation();
    failure.missing = timeout->missing();
  } else if (const auto* mismatch = dynamic_cast<const CollectiveMismatch*>(&error)) {
    failure.kind = Kind::kMismatch;
    failure.rank = mismatch->rank();
  }
  return failure;
}

}  // namespace yoke::net
