// Sent bytes and messages of each rank equal the closed form of the topology (design, law 5).

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/comm/sample.h"
#include "tests/support/spawn_ranks.h"
#include "yoke/comm/communicator.h"

namespace yoke::comm {
namespace {

using test::bytes_of;
using test::run_threads;

struct Sent {
  std::uint64_t payload = 0, messages = 0;
};

TrafficLine line_of(const Communicator& comm, const std::string& operation) {
  TrafficLine found;
  for (const TrafficLine& line : comm.traffic()) {
    if (line.operation == operation) found = line;
  }
  return found;
}

/// Elements of slice r when `count` are cut as even as can be at multiples of `grain`.
std::uint64_t slice(std::uint64_t count, int ranks, int r, std::uint64_t grain = 1) {
  const std::uint64_t grains = (count + grain - 1) / grain;
  const auto cut = [&](int part) { return std::min(count, grains * part / ranks * grain); };
  return cut(r + 1) - cut(r);
}

/// Ranks that receive from r in a binomial broadcast from 0: r + 2^k for every 2^k above r's own
/// reach.
int children(int ranks, int r) {
  int sum = 0;
  for (int bit = 1; bit < ranks && (r == 0 || bit < (r & -r)); bit <<= 1) sum += r + bit < ranks;
  return sum;
}

Sent all_reduce_form(Topology topology, int ranks, int r, std::uint64_t count,
                     std::uint64_t width) {
  const std::uint64_t p = ranks;
  if (topology == Topology::kTree) {
    const std::uint64_t sends = children(ranks, r) + (r == 0 ? 0 : 1);
    return {sends * count * width, sends};
  }
  if (topology == Topology::kRing) {
    if (ranks == 1) return {};
    return {(2 * count - slice(count, ranks, r) - slice(count, ranks, (r + 1) % ranks)) * width,
            2 * (p - 1)};
  }
  const std::uint64_t own = slice(count, ranks, r);
  return {(count - own + (p - 1) * own) * width, 2 * (p - 1)};
}

class TrafficOf : public testing::TestWithParam<std::tuple<TransportKind, Topology, int>> {
 protected:
  TransportKind transport() const { return std::get<0>(GetParam()); }
  Topology topology() const { return std::get<1>(GetParam()); }
  int ranks() const { return std::get<2>(GetParam()); }
  /// No message of these tests is longer than a frame.
  std::uint64_t header() const { return transport() == TransportKind::kTcp ? 68 : 32; }
};

TEST_P(TrafficOf, AllReduceIsTheClosedForm) {
  for (const std::size_t count : {0, 1, ranks() - 1, ranks(), ranks() + 1, 10007}) {
    run_threads(ranks(), [&](World world) {
      auto comm = Communicator::create(world, {.transport = transport()});
      auto data = test::elements<float>(world.rank(), count);
      for (int i = 0; i < 3; ++i)
        comm->all_reduce(bytes_of(data), DType::kFloat32, ReduceOp::kSum, topology());
      const TrafficLine line = line_of(*comm, "all_reduce");
      const Sent want = all_reduce_form(topology(), ranks(), world.rank(), count, sizeof(float));
      EXPECT_EQ(line.calls, 3u);
      EXPECT_EQ(line.topology, name_of(topology()));
      EXPECT_EQ(line.transport, name_of(transport()));
      EXPECT_EQ(line.payload_bytes, 3 * want.payload) << "rank " << world.rank() << ", " << count;
      EXPECT_EQ(line.messages, 3 * want.messages) << "rank " << world.rank() << ", " << count;
      EXPECT_EQ(line.wire_bytes, 3 * (want.payload + want.messages * header()));
    });
  }
}

TEST_P(TrafficOf, ReduceBlocksIsTheClosedForm) {
  if (topology() == Topology::kRing) return;
  const std::size_t count = 5000;
  const BlockPlan plan = BlockPlan::even(23, ranks());
  run_threads(ranks(), [&](World world) {
    auto comm = Communicator::create(world, {.transport = transport()});
    const int r = world.rank();
    const std::vector<float> block(count, 1.0f);
    const std::vector<std::span<const std::byte>> mine(plan.blocks_of(r).second, bytes_of(block));
    std::vector<float> out(count);
    comm->reduce_blocks(plan, mine, bytes_of(out), DType::kFloat32, topology());
    Sent want;
    const std::uint64_t p = ranks();
    if (topology() == Topology::kFullMesh) {
      const std::uint64_t own = slice(count, ranks(), r, 1024);
      want = {(mine.size() * (count - own) + (p - 1) * own) * sizeof(float),
              (p - 1) * (mine.size() + 1)};
    } else {
      // A message for each addition whose right operand is here and whose left one is not, then the
      // broadcast.
      std::uint64_t sends = children(ranks(), r);
      for (const auto& [left, right] : plan.additions()) {
        sends += plan.blocks()[right].owner == r && plan.blocks()[left].owner != r;
      }
      want = {sends * count * sizeof(float), sends};
    }
    const TrafficLine line = line_of(*comm, "reduce_blocks");
    EXPECT_EQ(line.payload_bytes, want.payload) << "rank " << r;
    EXPECT_EQ(line.messages, want.messages) << "rank " << r;
  });
}

TEST_P(TrafficOf, TheOthersAreTheirClosedForms) {
  const std::size_t part = 1000;  // bytes
  run_threads(ranks(), [&](World world) {
    auto comm = Communicator::create(world, {.transport = transport(), .topology = topology()});
    const int r = world.rank();
    const std::uint64_t p = ranks();
    std::vector<std::byte> one(part), all(part * p), more(part * p);
    comm->reduce_scatter(all, one, DType::kUInt8, ReduceOp::kSum);
    comm->all_gather(one, all);
    comm->reduce(one, DType::kUInt8, ReduceOp::kSum, 0);
    comm->broadcast(one, 0);
    comm->all_to_all(all, more);
    comm->gather(one, all, 0);
    comm->scatter(all, one, 0);
    comm->barrier();
    const auto expect = [&](const char* operation, std::uint64_t messages, std::uint64_t bytes) {
      const TrafficLine line = line_of(*comm, operation);
      EXPECT_EQ(line.messages, messages) << operation << " of rank " << r;
      EXPECT_EQ(line.payload_bytes, bytes) << operation << " of rank " << r;
      EXPECT_EQ(line.wire_bytes, bytes + messages * header()) << operation << " of rank " << r;
    };
    const std::uint64_t up = r == 0 ? 0 : 1;
    const std::uint64_t down = children(ranks(), r);
    expect("reduce_scatter", p - 1, (p - 1) * part);
    expect("all_gather", p - 1, (p - 1) * part);
    expect("reduce", up, up * part);
    expect("broadcast", down, down * part);
    expect("all_to_all", p - 1, (p - 1) * part);
    expect("gather", up, up * part);
    expect("scatter", r == 0 ? p - 1 : 0, r == 0 ? (p - 1) * part : 0);
    expect("barrier", up + down, 0);
  });
}

std::vector<std::tuple<TransportKind, Topology, int>> every_topology() {
  std::vector<std::tuple<TransportKind, Topology, int>> all;
  for (const auto topology : {Topology::kTree, Topology::kRing, Topology::kFullMesh}) {
    for (const int ranks : {1, 2, 3, 4, 5, 8, 9})
      all.emplace_back(TransportKind::kSharedMemory, topology, ranks);
    for (const int ranks : {2, 3}) all.emplace_back(TransportKind::kTcp, topology, ranks);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Topologies, TrafficOf, testing::ValuesIn(every_topology()),
                         [](const auto& info) {
                           return name_of(std::get<0>(info.param)) + "_" +
                                  name_of(std::get<1>(info.param)) + "_" +
                                  std::to_string(std::get<2>(info.param));
                         });

TEST(TrafficOfTheDirectPath, IsWhatIsReadFromAndWrittenToOthers) {
  for (const int ranks : {1, 2, 3, 5}) {
    run_threads(ranks, [&](World world) {
      const std::uint64_t p = ranks;
      // float32: on the line, one shot, two chunks of 65,536, in sections.
      const std::size_t small = 6, middle = 1000, large = 100000;
      const auto chunked = [&](std::size_t count) {
        std::uint64_t bytes = 0;
        for (std::size_t first = 0; first < count; first += 65536) {
          const std::uint64_t chunk = std::min<std::size_t>(65536, count - first);
          const std::uint64_t own = slice(chunk, ranks, world.rank(), 16);
          bytes += ((p - 1) * own + chunk - own) * 4;
        }
        return bytes;
      };
      const auto check = [&](std::size_t count, std::uint64_t payload, std::uint64_t phases) {
        auto comm = Communicator::create(world);
        std::vector<float> data(count);
        comm->all_reduce(bytes_of(data), DType::kFloat32, ReduceOp::kSum);
        const TrafficLine line = line_of(*comm, "all_reduce");
        EXPECT_EQ(line.topology, "direct");
        EXPECT_EQ(line.payload_bytes, payload) << count;
        EXPECT_EQ(line.messages, phases * (p - 1)) << count;
        EXPECT_EQ(line.wire_bytes, payload + 64 * phases * (p - 1)) << count;
      };
      check(small, (p - 1) * small * 4, 1);
      check(middle, (p - 1) * middle * 4, 1);
      check(large, chunked(large), 3);

      auto comm = Communicator::create(world);
      auto shared = comm->share(large * 4);
      comm->all_reduce(shared->of(world.rank()), DType::kFloat32, ReduceOp::kSum);
      const TrafficLine line = line_of(*comm, "all_reduce");
      EXPECT_EQ(line.payload_bytes, 2 * (p - 1) * slice(large, ranks, world.rank(), 1024) * 4);
      EXPECT_EQ(line.messages, 2 * (p - 1));
    });
  }
}

}  // namespace
}  // namespace yoke::comm
