#pragma once

#include <cstdint>
#include <string>

namespace yoke::comm {

/// What a call does. The values travel in frames (net::CallTag::operation) and net::describe()
/// names them: never renumber.
enum class Operation : std::uint8_t {
  kAllReduce = 0,
  kReduceScatter = 1,
  kAllGather = 2,
  kReduce = 3,
  kBroadcast = 4,
  kAllToAll = 5,
  kGather = 6,
  kScatter = 7,
  kBarrier = 8,
  kSend = 9,
  kReceive = 10,
  kReduceBlocks = 11,
  kShare = 12,
};
inline constexpr int kOperations = 13;

/// "all_reduce" ...
std::string name_of(Operation operation);

}  // namespace yoke::comm
