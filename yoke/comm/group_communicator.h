#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "yoke/comm/backend.h"
#include "yoke/comm/call_queue.h"
#include "yoke/comm/communicator.h"
#include "yoke/comm/traffic.h"
#include "yoke/net/failure.h"

namespace yoke::comm {

/// The one Communicator there is. Every call has the same body: check the arguments, wait for
/// started calls, refuse if spent, write down the tag that all ranks must agree on, hand over to
/// the backend, count.
class GroupCommunicator final : public Communicator {
 public:
  GroupCommunicator(World world, const CommunicatorOptions& options, TransportKind transport,
                    std::unique_ptr<Backend> backend);
  ~GroupCommunicator() override;

  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  std::uint64_t generation() const override { return world_.generation(); }
  TransportKind transport() const override { return transport_; }

  void all_reduce(std::span<std::byte> data, DType dtype, ReduceOp op, Topology topology) override;
  void reduce_scatter(std::span<const std::byte> in, std::span<std::byte> out, DType dtype,
                      ReduceOp op) override;
  void all_gather(std::span<const std::byte> in, std::span<std::byte> out) override;
  void reduce(std::span<std::byte> data, DType dtype, ReduceOp op, int root) override;
  void broadcast(std::span<std::byte> data, int root) override;
  void all_to_all(std::span<const std::byte> in, std::span<std::byte> out) override;
  void gather(std::span<const std::byte> in, std::span<std::byte> out, int root) override;
  void scatter(std::span<const std::byte> in, std::span<std::byte> out, int root) override;
  void barrier() override;
  void barrier(Clock::duration timeout) override;
  void send(std::span<const std::byte> data, int peer) override;
  void receive(std::span<std::byte> data, int peer) override;
  void reduce_blocks(const BlockPlan& plan, std::span<const std::span<const std::byte>> mine,
                     std::span<std::byte> out, DType dtype, Topology topology) override;
  Work start(std::function<void(Communicator&)> call) override {
    return queue_.start(std::move(call));
  }
  std::shared_ptr<SharedSections> share(std::size_t bytes_per_rank) override;
  void abort(const std::string& reason) override;
  std::vector<TrafficLine> traffic() const override { return traffic_.lines(backend_->name()); }

 private:
  /// What of a tag depends on the call.
  struct Shape {
    Operation operation;
    std::uint64_t count = 0;
    DType dtype = DType::kUInt8;
    ReduceOp op = ReduceOp::kSum;
    int root = -1;
    Topology asked = Topology::kAuto;
    std::optional<Clock::duration> timeout = std::nullopt;  ///< nothing: that of the options
  };

  template <typename Body>
  void run(const Shape& shape, std::uint64_t& sequence, const Body& body);
  template <typename Body>
  void run(const Shape& shape, const Body& body) {
    run(shape, sequence_, body);
  }
  void refuse_if_spent();
  void spend(const net::Failure& failure);

  void check_parts(const char* operation, std::size_t whole, std::size_t part) const;
  void check_root(const char* operation, int root) const;
  void check_peer(const char* operation, int peer) const;
  static std::uint64_t elements_of(const char* operation, std::size_t bytes, DType dtype);

  const World world_;
  const CommunicatorOptions options_;
  const TransportKind transport_;
  const std::unique_ptr<Backend> backend_;
  const int exceptions_;  ///< in flight when it was made
  /// Numbers of the next calls: collectives, and messages to and from each rank. Used by whoever
  /// runs a call.
  std::uint64_t sequence_ = 0;
  std::vector<std::uint64_t> sent_, received_;
  Traffic traffic_;
  std::atomic<bool> spent_{false};
  std::mutex mutex_;  ///< guards failure_
  std::optional<net::Failure> failure_;
  CallQueue queue_;  ///< last: its thread uses the rest
};

}  // namespace yoke::comm
