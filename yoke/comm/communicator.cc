#include "yoke/comm/communicator.h"

#include <array>
#include <utility>

#include "yoke/base/error.h"
#include "yoke/comm/operation.h"

namespace yoke::comm {
namespace {

constexpr std::array<std::pair<Topology, const char*>, 4> kTopologyNames = {
    {{Topology::kAuto, "auto"},
     {Topology::kTree, "tree"},
     {Topology::kRing, "ring"},
     {Topology::kFullMesh, "full_mesh"}}};
constexpr std::array<std::pair<TransportKind, const char*>, 3> kTransportNames = {
    {{TransportKind::kAuto, "auto"},
     {TransportKind::kSharedMemory, "shm"},
     {TransportKind::kTcp, "tcp"}}};
constexpr std::array<std::pair<ReduceOp, const char*>, 5> kReduceNames = {
    {{ReduceOp::kSum, "sum"},
     {ReduceOp::kMean, "mean"},
     {ReduceOp::kMax, "max"},
     {ReduceOp::kMin, "min"},
     {ReduceOp::kProduct, "product"}}};
constexpr std::array<const char*, kOperations> kOperationNames = {
    "all_reduce", "reduce_scatter", "all_gather", "reduce",  "broadcast",
    "all_to_all", "gather",         "scatter",    "barrier", "send",
    "receive",    "reduce_blocks",  "share"};

template <typename Names, typename Value>
std::string name_in(const Names& names, Value value, const char* what) {
  for (const auto& [one, name] : names) {
    if (one == value) return name;
  }
  throw InternalError(cat("there is no ", what, " number ", static_cast<int>(value), "."));
}

template <typename Names>
auto value_in(const Names& names, const std::string& text, const char* what) {
  std::string known;
  for (const auto& [value, name] : names) {
    if (text == name) return value;
    known += cat(known.empty() ? "" : ", ", name);
  }
  throw ConfigError(cat("there is no ", what, " \"", text, "\". Choose one of: ", known, "."));
}

}  // namespace

std::string name_of(ReduceOp op) {
  return name_in(kReduceNames, op, "reduction");
}
std::string name_of(Topology topology) {
  return name_in(kTopologyNames, topology, "topology");
}
std::string name_of(TransportKind kind) {
  return name_in(kTransportNames, kind, "transport");
}
std::string name_of(Operation operation) {
  return kOperationNames.at(static_cast<std::size_t>(operation));
}

Topology topology_from(const std::string& name) {
  return value_in(kTopologyNames, name, "topology");
}
TransportKind transport_from(const std::string& name) {
  return value_in(kTransportNames, name, "transport");
}

bool keeps_canonical_order(Topology topology) {
  return topology != Topology::kRing;
}

}  // namespace yoke::comm
