#include "yoke/comm/traffic.h"

namespace yoke::comm {

void Traffic::add(Operation operation, Topology topology, const net::TransportCounters& before,
                  const net::TransportCounters& after) {
  Counters& counters = counters_[static_cast<int>(operation)][static_cast<int>(topology)];
  const auto add = [](std::atomic<std::uint64_t>& to, std::uint64_t amount) {
    to.store(to.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  };
  add(counters.calls, 1);
  add(counters.payload_bytes, after.payload_bytes - before.payload_bytes);
  add(counters.wire_bytes, after.wire_bytes - before.wire_bytes);
  add(counters.messages, after.messages - before.messages);
}

std::vector<TrafficLine> Traffic::lines(const std::string& transport) const {
  std::vector<TrafficLine> lines;
  for (int operation = 0; operation < kOperations; ++operation) {
    for (int topology = 0; topology < kTopologies; ++topology) {
      const Counters& counters = counters_[operation][topology];
      const std::uint64_t calls = counters.calls.load(std::memory_order_relaxed);
      if (calls == 0) continue;
      const auto shape = static_cast<Topology>(topology);
      lines.push_back({.operation = name_of(static_cast<Operation>(operation)),
                       .topology = shape == Topology::kAuto ? "direct" : name_of(shape),
                       .transport = transport,
                       .calls = calls,
                       .payload_bytes = counters.payload_bytes.load(std::memory_order_relaxed),
                       .wire_bytes = counters.wire_bytes.load(std::memory_order_relaxed),
                       .messages = counters.messages.load(std::memory_order_relaxed)});
    }
  }
  return lines;
}

}  // namespace yoke::comm
