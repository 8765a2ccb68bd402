#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "yoke/base/clock.h"
#include "yoke/comm/block_plan.h"
#include "yoke/comm/communicator.h"
#include "yoke/comm/operation.h"
#include "yoke/net/transport.h"

namespace yoke::comm {

/// One call, as every rank describes it; dtype, reduction, root and count are in the tag.
struct Call {
  net::CallTag tag;
  Topology topology = Topology::kAuto;  ///< what choose() answered
  Deadline deadline{};

  ReduceOp op() const { return static_cast<ReduceOp>(tag.reduce); }
};

/// Moves the bytes of a communicator: by messages (comm/message_backend.h) or by reading each
/// other's memory (comm/shm/backend.h). Arguments are checked already; the meaning of each
/// operation is communicator.h's. One caller at a time; abort() and counters() may come from any
/// thread. Throws as the communicator does; what was thrown once need not be remembered.
///
/// No input is written, also where it is the output too, before the tags of all contributions have
/// been compared: a mismatch leaves every input as it was.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;  ///< "shm", "tcp"
  /// The shape that an operation on `bytes` of data takes if the user asks for `asked`. Where there
  /// is no choice this is the one shape there is:
  ///
  ///   all_reduce, reduce_blocks    tree, ring, full mesh
  ///   reduce_scatter, all_gather   ring if asked, else full mesh
  ///   reduce, broadcast, barrier   tree
  ///   all_to_all, gather, scatter, send, receive   full mesh (directly from source to destination)
  ///
  /// kAuto stands for the direct path through shared memory, for all of them but send and receive.
  virtual Topology choose(Operation operation, Topology asked, std::size_t bytes) const = 0;

  virtual void all_reduce(const Call& call, std::span<std::byte> data) = 0;
  virtual void reduce_scatter(const Call& call, std::span<const std::byte> in,
                              std::span<std::byte> out) = 0;
  virtual void all_gather(const Call& call, std::span<const std::byte> in,
                          std::span<std::byte> out) = 0;
  virtual void reduce(const Call& call, std::span<std::byte> data) = 0;
  virtual void broadcast(const Call& call, std::span<std::byte> data) = 0;
  virtual void all_to_all(const Call& call, std::span<const std::byte> in,
                          std::span<std::byte> out) = 0;
  virtual void gather(const Call& call, std::span<const std::byte> in,
                      std::span<std::byte> out) = 0;
  virtual void scatter(const Call& call, std::span<const std::byte> in,
                       std::span<std::byte> out) = 0;
  virtual void barrier(const Call& call) = 0;
  virtual void send(const Call& call, std::span<const std::byte> data, int peer) = 0;
  virtual void receive(const Call& call, std::span<std::byte> data, int peer) = 0;
  virtual void reduce_blocks(const Call& call, const BlockPlan& plan,
                             std::span<const std::span<const std::byte>> mine,
                             std::span<std::byte> out) = 0;
  virtual std::shared_ptr<SharedSections> share(const Call& call, std::size_t bytes_per_rank) = 0;

  virtual void abort(const std::string& reason) = 0;
  virtual net::TransportCounters counters() const = 0;
};

}  // namespace yoke::comm
