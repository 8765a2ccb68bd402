#pragma once

#include <memory>
#include <string>

#include "yoke/comm/backend.h"
#include "yoke/comm/message_backend.h"
#include "yoke/comm/shm/direct.h"

namespace yoke::comm {

/// Ranks of one host: the direct path (comm/shm/direct.h) for kAuto, messages through mailboxes for
/// a named topology and for send and receive. Every collective begins with a phase of control
/// lines, so that a mismatch, a death or a stop is found alike, whatever the topology.
class ShmBackend final : public Backend {
 public:
  /// Collective.
  ShmBackend(const Place& place, net::SharedMemory& memory, const std::string& name,
             Deadline deadline);

  std::string name() const override { return "shm"; }
  Topology choose(Operation operation, Topology asked, std::size_t bytes) const override;

  void all_reduce(const Call& call, std::span<std::byte> data) override;
  void reduce_scatter(const Call& call, std::span<const std::byte> in,
                      std::span<std::byte> out) override;
  void all_gather(const Call& call, std::span<const std::byte> in,
                  std::span<std::byte> out) override;
  void reduce(const Call& call, std::span<std::byte> data) override;
  void broadcast(const Call& call, std::span<std::byte> data) override;
  void all_to_all(const Call& call, std::span<const std::byte> in,
                  std::span<std::byte> out) override;
  void gather(const Call& call, std::span<const std::byte> in, std::span<std::byte> out) override;
  void scatter(const Call& call, std::span<const std::byte> in, std::span<std::byte> out) override;
  void barrier(const Call& call) override;
  void send(const Call& call, std::span<const std::byte> data, int peer) override;
  void receive(const Call& call, std::span<std::byte> data, int peer) override;
  void reduce_blocks(const Call& call, const BlockPlan& plan,
                     std::span<const std::span<const std::byte>> mine,
                     std::span<std::byte> out) override;
  std::shared_ptr<SharedSections> share(const Call& call, std::size_t bytes_per_rank) override;

  void abort(const std::string& reason) override;
  net::TransportCounters counters() const override;

 private:
  bool is_direct(const Call& call);

  const std::shared_ptr<net::ShmGroup> group_;
  MessageBackend messages_;
  Direct direct_;
};

}  // namespace yoke::comm
