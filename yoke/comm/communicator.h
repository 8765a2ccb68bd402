#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/dtype.h"
#include "yoke/comm/block_plan.h"
#include "yoke/comm/reduce_op.h"
#include "yoke/net/world.h"

namespace yoke::comm {

/// The shape of a collective. kTree and kFullMesh add in the canonical order of BlockPlan (the
/// ranks are its leaves); kRing does not, though all ranks get the same bits.
///
/// kAuto keeps the canonical order. In shared memory it is the direct path (comm/shm/direct.h):
/// ranks read each other's memory, and no message is sent; naming a topology there sends messages
/// through mailboxes in shared memory instead, which is slower. Over TCP it is the tree for
/// all_reduce of up to 32 KiB, and the full mesh for everything larger and for reduce_blocks.
/// Operations that have no such choice use their one shape (comm/backend.h).
enum class Topology : std::uint8_t { kAuto, kTree, kRing, kFullMesh };

enum class TransportKind { kAuto, kSharedMemory, kTcp };

std::string name_of(ReduceOp op);
std::string name_of(Topology topology);
std::string name_of(TransportKind kind);
Topology topology_from(const std::string& name);        ///< ConfigError lists the names
TransportKind transport_from(const std::string& name);  ///< ConfigError lists the names
bool keeps_canonical_order(Topology topology);

struct CommunicatorOptions {
  TransportKind transport =
      TransportKind::kAuto;  ///< kAuto: shared memory if all ranks are on one host, else TCP
  Topology topology = Topology::kAuto;                      ///< what kAuto in a call means
  Clock::duration timeout = std::chrono::seconds(60);       ///< of every call
  Clock::duration user_timeout = std::chrono::seconds(20);  ///< TCP_USER_TIMEOUT
  std::string name = "world";  ///< unique among the communicators of a world
};

/// A call that runs on the communicator's thread. Waiting twice is allowed; a failure is thrown by
/// wait().
class Work {
 public:
  Work() = default;
  void wait() const;
  bool done() const;

 private:
  friend class CallQueue;
  struct State;
  std::shared_ptr<State> state_;
};

/// What this rank has moved, by operation. `topology` is the one that ran ("direct" in shared
/// memory).
///
/// Messages: payload_bytes are what this rank sent, without frame headers; wire_bytes with them.
/// Direct path: payload_bytes are the bytes of payload that this rank read out of other ranks'
/// memory (staged contributions, shared sections, finished slices) plus those that it wrote into
/// theirs; its own memory does not count. wire_bytes adds 64 bytes for each control line of another
/// rank that it looked at; messages are those lines. Over all ranks an all-reduce of N bytes costs
/// 2 (P - 1) N, as with messages; the one-shot form for small buffers P (P - 1) N.
///
/// The tests hold all of it against the closed forms in the headers of the algorithms.
struct TrafficLine {
  std::string operation, topology, transport;
  std::uint64_t calls = 0, payload_bytes = 0, wire_bytes = 0, messages = 0;
};

/// Memory of all ranks of a host: section r belongs to rank r, all can read and write all.
class SharedSections {
 public:
  virtual ~SharedSections() = default;
  virtual std::span<std::byte> of(int rank) = 0;
};

/// A group of ranks of one generation that runs collectives together.
///
/// Every rank makes the same calls in the same order. Each call carries its sequence number,
/// operation, dtype, count, root and topology, compared before the payload moves: a difference
/// throws CollectiveMismatch that names the rank. (Over messages, a rank that only sends in a call,
/// like the root of a broadcast, learns of a difference in its next call.) Every call has the
/// deadline of the options: Timeout names the operation and the missing ranks. A rank that died is
/// PeerLost on every survivor. After any of these the communicator is spent: later calls throw the
/// same.
///
/// A communicator is destroyed without waiting for the others, and at once after a failure; calls
/// that were started and not waited for are run to their end first (they have deadlines). A rank
/// that destroys it while others still need it is PeerLost for them, as if it had died.
///
/// One thread calls; start() hands calls to a thread of the communicator, run in the order started;
/// a blocking call first waits for those. abort() may come from any thread.
///
/// Counts are elements. In place is allowed wherever `in` and `out` may be equal. 0 elements are
/// legal.
class Communicator {
 public:
  /// Collective over the world. Throws ConfigError (also when shared memory is demanded and the
  /// ranks are not on one host, naming a rank that is elsewhere), Timeout, PeerLost, ResourceError,
  /// IoError; and CollectiveMismatch or Aborted if another rank has failed by then.
  static std::unique_ptr<Communicator> create(const World& world,
                                              const CommunicatorOptions& options = {});
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::uint64_t generation() const = 0;
  virtual TransportKind transport() const = 0;  ///< the one that was taken

  virtual void all_reduce(std::span<std::byte> data, DType dtype, ReduceOp op,
                          Topology topology = Topology::kAuto) = 0;
  /// `in`: size() equal parts; `out`: the reduced part of this rank.
  virtual void reduce_scatter(std::span<const std::byte> in, std::span<std::byte> out, DType dtype,
                              ReduceOp op) = 0;
  /// `out`: the `in` of all ranks, one after another.
  virtual void all_gather(std::span<const std::byte> in, std::span<std::byte> out) = 0;
  virtual void reduce(std::span<std::byte> data, DType dtype, ReduceOp op, int root) = 0;
  virtual void broadcast(std::span<std::byte> data, int root) = 0;
  /// `in`, `out`: size() equal parts; part p goes to rank p.
  virtual void all_to_all(std::span<const std::byte> in, std::span<std::byte> out) = 0;
  virtual void gather(std::span<const std::byte> in, std::span<std::byte> out, int root) = 0;
  virtual void scatter(std::span<const std::byte> in, std::span<std::byte> out, int root) = 0;
  virtual void barrier() = 0;
  /// The same with a deadline of its own, where one rank does something that takes long.
  virtual void barrier(Clock::duration timeout) = 0;
  /// Between two ranks; messages of one ordered pair match in order. Returns when the bytes are
  /// handed over. The peer may not be this rank.
  virtual void send(std::span<const std::byte> data, int peer) = 0;
  virtual void receive(std::span<std::byte> data, int peer) = 0;

  /// The canonical sum over blocks: `mine[i]` is block plan.positions_of(rank())[i], of
  /// out.size() bytes of float32 or float64. Every rank gets the same bits in `out`. kFullMesh (the
  /// default): slices at multiples of 1,024 elements, each owned by one rank, which receives all
  /// blocks of it, adds and hands the sum to all; rank r sends blocks_r * (N - slice_r) + (W - 1) *
  /// slice_r bytes. kTree: up the tree of blocks, then down. kRing: local blocks are added, then a
  /// ring all-reduce; not canonical. At least one leaf; all ranks pass equal plans. `out` may not
  /// overlap a block.
  virtual void reduce_blocks(const BlockPlan& plan,
                             std::span<const std::span<const std::byte>> mine,
                             std::span<std::byte> out, DType dtype,
                             Topology topology = Topology::kAuto) = 0;

  /// Runs `call(*this)` on the communicator's thread.
  virtual Work start(std::function<void(Communicator&)> call) = 0;

  /// Collective. `bytes_per_rank` of shared memory for every rank, zero, each section at a page
  /// boundary. An all_reduce whose data lies at the same place of each rank's section copies
  /// nothing: every rank reduces its slice straight out of the others' sections. Throws ConfigError
  /// on a transport other than shared memory.
  virtual std::shared_ptr<SharedSections> share(std::size_t bytes_per_rank) = 0;

  /// Ends every pending and later call, on all ranks, within 100 ms. Thread-safe.
  virtual void abort(const std::string& reason) = 0;

  virtual std::vector<TrafficLine> traffic() const = 0;
};

}  // namespace yoke::comm
