#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/dtype.h"

namespace yoke::net {

/// What the two ends of a message must agree on. It travels in every frame, before the payload, and
/// in the control lines of shared memory.
struct CallTag {
  std::uint64_t sequence = 0;  ///< number of the call on this communicator
  std::uint8_t operation = 0;  ///< comm::Operation
  std::uint8_t reduce = 0;     ///< comm::ReduceOp
  DType dtype = DType::kUInt8;
  std::uint8_t topology = 0;  ///< comm::Topology
  std::int32_t root = -1;
  std::uint64_t count = 0;  ///< elements, as the operation counts them
  bool operator==(const CallTag&) const = default;
};

/// Whether all ranks make the call, under one number; messages between two are counted by pair.
bool is_collective(const CallTag& tag);
/// "all_reduce #412 of 25000 float32 sum (tree)".
std::string describe(const CallTag& tag);

struct Outgoing {
  int peer;
  std::span<const std::byte> bytes;
};
struct Incoming {
  int peer;
  std::span<std::byte> bytes;
};

/// What one rank has sent since the transport was made. `wire` includes frame headers.
struct TransportCounters {
  std::uint64_t payload_bytes = 0;
  std::uint64_t wire_bytes = 0;
  std::uint64_t messages = 0;
};

/// Ordered, reliable messages between each pair of ranks of one generation. One caller at a time;
/// abort() may come from any thread.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string name() const = 0;  ///< "tcp", "shm"

  /// Moves all messages, in both directions at once, so no order of calls among the ranks can
  /// deadlock on full buffers. Messages to one peer arrive in the order given; an incoming message
  /// must have exactly the size and tag expected. Returns when all outgoing bytes are handed over
  /// and all incoming ones are in place. Zero-byte messages are messages.
  ///
  /// Throws PeerLost (a peer's process ended or its connection broke; also when another rank found
  /// that out first: the rank named is the one that is lost), Timeout (names the ranks that did not
  /// move), CollectiveMismatch (a frame of another call), Aborted. After a throw the transport is
  /// spent, and every peer is told the cause.
  virtual void exchange(const CallTag& tag, std::span<const Outgoing> out,
                        std::span<const Incoming> in, Deadline deadline) = 0;

  /// Ends every pending and later call, here and on the peers, with Aborted. Thread-safe.
  virtual void abort(const std::string& reason) = 0;

  virtual TransportCounters counters() const = 0;
};

}  // namespace yoke::net
