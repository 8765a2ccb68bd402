#pragma once

#include <memory>
#include <string>

#include "yoke/comm/algorithms/link.h"
#include "yoke/comm/backend.h"

namespace yoke::comm {

/// Collectives as messages over a transport: the algorithms of comm/algorithms/, which give steps
/// and bytes.
class MessageBackend final : public Backend {
 public:
  /// all_reduce of at most this takes the tree when nothing else is asked: fewer messages, and none
  /// waits for many connections at once.
  static constexpr std::size_t kTreeBytes = std::size_t{32} << 10;

  explicit MessageBackend(std::unique_ptr<net::Transport> transport);

  std::string name() const override { return transport_->name(); }
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
  /// Throws ConfigError: there is no memory to share.
  std::shared_ptr<SharedSections> share(const Call& call, std::size_t bytes_per_rank) override;

  void abort(const std::string& reason) override { transport_->abort(reason); }
  net::TransportCounters counters() const override { return transport_->counters(); }

 private:
  Link link(const Call& call) const { return {*transport_, call.tag, call.deadline}; }

  const std::unique_ptr<net::Transport> transport_;
  const BlockPlan one_each_;
};

}  // namespace yoke::comm
