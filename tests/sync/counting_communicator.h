#pragma once

#include <chrono>
#include <memory>
#include <thread>

#include "yoke/base/random.h"
#include "yoke/comm/communicator.h"

namespace yoke::test {

/// A communicator that counts the calls handed to its thread, and may hold each up for a while.
class CountingCommunicator : public comm::Communicator {
 public:
  CountingCommunicator(std::unique_ptr<comm::Communicator> inner, bool delays)
      : inner_(std::move(inner)), delays_(delays) {}

  int started() const { return started_; }

  comm::Work start(std::function<void(Communicator&)> call) override {
    const auto key = RandomKey(5).with(static_cast<std::uint64_t>(rank()));
    ++started_;
    const auto draw = key.bits(static_cast<std::uint64_t>(started_)) % 3000;
    const std::chrono::microseconds delay(delays_ ? draw : 0);
    return inner_->start([call = std::move(call), delay](Communicator& communicator) {
      std::this_thread::sleep_for(delay);
      call(communicator);
    });
  }

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::uint64_t generation() const override { return inner_->generation(); }
  comm::TransportKind transport() const override { return inner_->transport(); }
  void all_reduce(std::span<std::byte> data, DType dtype, comm::ReduceOp op,
                  comm::Topology topology) override {
    inner_->all_reduce(data, dtype, op, topology);
  }
  void reduce_scatter(std::span<const std::byte> in, std::span<std::byte> out, DType dtype,
                      comm::ReduceOp op) override {
    inner_->reduce_scatter(in, out, dtype, op);
  }
  void all_gather(std::span<const std::byte> in, std::span<std::byte> out) override {
    inner_->all_gather(in, out);
  }
  void reduce(std::span<std::byte> data, DType dtype, comm::ReduceOp op, int root) override {
    inner_->reduce(data, dtype, op, root);
  }
  void broadcast(std::span<std::byte> data, int root) override { inner_->broadcast(data, root); }
  void all_to_all(std::span<const std::byte> in, std::span<std::byte> out) override {
    inner_->all_to_all(in, out);
  }
  void gather(std::span<const std::byte> in, std::span<std::byte> out, int root) override {
    inner_->gather(in, out, root);
  }
  void scatter(std::span<const std::byte> in, std::span<std::byte> out, int root) override {
    inner_->scatter(in, out, root);
  }
  void barrier() override { inner_->barrier(); }
  void barrier(Clock::duration timeout) override { inner_->barrier(timeout); }
  void send(std::span<const std::byte> data, int peer) override { inner_->send(data, peer); }
  void receive(std::span<std::byte> data, int peer) override { inner_->receive(data, peer); }
  void reduce_blocks(const comm::BlockPlan& plan, std::span<const std::span<const std::byte>> mine,
                     std::span<std::byte> out, DType dtype, comm::Topology topology) override {
    inner_->reduce_blocks(plan, mine, out, dtype, topology);
  }
  std::shared_ptr<comm::SharedSections> share(std::size_t bytes) override {
    return inner_->share(bytes);
  }
  void abort(const std::string& reason) override { inner_->abort(reason); }
  std::vector<comm::TrafficLine> traffic() const override { return inner_->traffic(); }

 private:
  std::unique_ptr<comm::Communicator> inner_;
  bool delays_;
  int started_ = 0;
};

}  // namespace yoke::test
