#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "yoke/comm/communicator.h"
#include "yoke/comm/operation.h"
#include "yoke/net/transport.h"

namespace yoke::comm {

/// What a communicator has moved, by operation and topology. One thread adds at a time; any may
/// read.
class Traffic {
 public:
  void add(Operation operation, Topology topology, const net::TransportCounters& before,
           const net::TransportCounters& after);
  /// Operations that were called, in the order of Operation and Topology.
  std::vector<TrafficLine> lines(const std::string& transport) const;

 private:
  struct Counters {
    std::atomic<std::uint64_t> calls{0}, payload_bytes{0}, wire_bytes{0}, messages{0};
  };
  static constexpr int kTopologies = 4;
  std::array<std::array<Counters, kTopologies>, kOperations> counters_;
};

}  // namespace yoke::comm
