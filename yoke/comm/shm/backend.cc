#include "yoke/comm/shm/backend.h"

#include "yoke/net/shm/transport.h"

namespace yoke::comm {

ShmBackend::ShmBackend(const Place& place, net::SharedMemory& memory, const std::string& name,
                       Deadline deadline)
    : group_(net::ShmGroup::join(place, memory, name, deadline)),
      messages_(net::make_shm_transport(group_, memory, deadline)),
      direct_(group_, memory, deadline) {}

Topology ShmBackend::choose(Operation operation, Topology asked, std::size_t bytes) const {
  const bool between_two = operation == Operation::kSend || operation == Operation::kReceive;
  if (asked == Topology::kAuto && !between_two) return Topology::kAuto;
  return messages_.choose(operation, asked, bytes);
}

bool ShmBackend::is_direct(const Call& call) {
  // Another rank may have given up since the last call.
  group_->check();
  if (call.topology == Topology::kAuto) return true;
  direct_.compare(call);
  return false;
}

void ShmBackend::all_reduce(const Call& call, std::span<std::byte> data) {
  is_direct(call) ? direct_.all_reduce(call, data) : messages_.all_reduce(call, data);
}

void ShmBackend::reduce_scatter(const Call& call, std::span<const std::byte> in,
                                std::span<std::byte> out) {
  is_direct(call) ? direct_.reduce_scatter(call, in, out) : messages_.reduce_scatter(call, in, out);
}

void ShmBackend::all_gather(const Call& call, std::span<const std::byte> in,
                            std::span<std::byte> out) {
  is_direct(call) ? direct_.all_gather(call, in, out) : messages_.all_gather(call, in, out);
}

void ShmBackend::reduce(const Call& call, std::span<std::byte> data) {
  is_direct(call) ? direct_.reduce(call, data) : messages_.reduce(call, data);
}

void ShmBackend::broadcast(const Call& call, std::span<std::byte> data) {
  is_direct(call) ? direct_.broadcast(call, data) : messages_.broadcast(call, data);
}

void ShmBackend::all_to_all(const Call& call, std::span<const std::byte> in,
                            std::span<std::byte> out) {
  is_direct(call) ? direct_.all_to_all(call, in, out) : messages_.all_to_all(call, in, out);
}

void ShmBackend::gather(const Call& call, std::span<const std::byte> in, std::span<std::byte> out) {
  is_direct(call) ? direct_.gather(call, in, out) : messages_.gather(call, in, out);
}

void ShmBackend::scatter(const Call& call, std::span<const std::byte> in,
                         std::span<std::byte> out) {
  is_direct(call) ? direct_.scatter(call, in, out) : messages_.scatter(call, in, out);
}

void ShmBackend::barrier(const Call& call) {
  is_direct(call) ? direct_.barrier(call) : messages_.barrier(call);
}

void ShmBackend::send(const Call& call, std::span<const std::byte> data, int peer) {
  messages_.send(call, data, peer);
}

void ShmBackend::receive(const Call& call, std::span<std::byte> data, int peer) {
  messages_.receive(call, data, peer);
}

void ShmBackend::reduce_blocks(const Call& call, const BlockPlan& plan,
                               std::span<const std::span<const std::byte>> mine,
                               std::span<std::byte> out) {
  is_direct(call) ? direct_.reduce_blocks(call, plan, mine, out)
                  : messages_.reduce_blocks(call, plan, mine, out);
}

std::shared_ptr<SharedSections> ShmBackend::share(const Call& call, std::size_t bytes_per_rank) {
  group_->check();
  return direct_.share(call, bytes_per_rank);
}

void ShmBackend::abort(const std::string& reason) {
  group_->fail({.kind = net::Failure::Kind::kAborted,
                .generation = group_->generation(),
                .message = reason});
}

net::TransportCounters ShmBackend::counters() const {
  const net::TransportCounters direct = direct_.counters();
  const net::TransportCounters messages = messages_.counters();
  return {.payload_bytes = direct.payload_bytes + messages.payload_bytes,
          .wire_bytes = direct.wire_bytes + messages.wire_bytes,
          .messages = direct.messages + messages.messages};
}

}  // namespace yoke::comm
