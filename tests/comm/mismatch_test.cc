// Ranks that call different things: an error that names one of them, and nobody's data is touched.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <functional>
#include <mutex>
#include <string>
#include <tuple>

#include "tests/comm/sample.h"
#include "tests/support/spawn_ranks.h"
#include "yoke/base/error.h"
#include "yoke/comm/communicator.h"

namespace yoke::comm {
namespace {

using test::bytes_of;
using test::run_threads;

constexpr int kRanks = 4;
constexpr int kOdd = 2;  ///< the rank that does something else

using Calls = std::function<void(Communicator&, std::vector<float>&)>;
struct Case {
  const char* name;
  Calls odd;  ///< the others reduce 1,000 float32 by sum, or broadcast from 0
  bool broadcast = false;
};

void sum_of(Communicator& comm, std::vector<float>& data) {
  comm.all_reduce(bytes_of(data), DType::kFloat32, ReduceOp::kSum);
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"count",
       [](auto& comm, auto& data) {
         comm.all_reduce(bytes_of(data).first(400), DType::kFloat32, ReduceOp::kSum);
       }},
      {"dtype", [](auto& comm,
                   auto& data) { comm.all_reduce(bytes_of(data), DType::kInt32, ReduceOp::kSum); }},
      {"same_bytes_other_dtype",
       [](auto& comm, auto& data) {
         comm.all_reduce(bytes_of(data), DType::kFloat64, ReduceOp::kSum);
       }},
      {"op", [](auto& comm,
                auto& data) { comm.all_reduce(bytes_of(data), DType::kFloat32, ReduceOp::kMax); }},
      {"operation", [](auto& comm, auto& data) { comm.broadcast(bytes_of(data), 0); }},
      {"operation_that_sends",
       [](auto& comm, auto& data) { comm.broadcast(bytes_of(data), kOdd); }},
      {"barrier", [](auto& comm, auto&) { comm.barrier(); }},
      {"root", [](auto& comm, auto& data) { comm.broadcast(bytes_of(data), 1); }, true},
      {"one_call_more",
       [](auto& comm, auto& data) {
         comm.barrier();
         sum_of(comm, data);
       }},
  };
  return all;
}

class Mismatch : public testing::TestWithParam<std::tuple<TransportKind, Topology, int>> {};

TEST_P(Mismatch, IsAnErrorThatNamesARankAndLeavesTheInputs) {
  const auto& [transport, topology, number] = GetParam();
  const Case& test_case = cases()[number];
  std::mutex mutex;
  std::vector<int> named;
  std::barrier created(kRanks);
  run_threads(kRanks, [&](World world) {
    auto comm = Communicator::create(
        world,
        {.transport = transport, .topology = topology, .timeout = std::chrono::milliseconds(500)});
    // Nobody fails in create() because others have failed in what follows.
    created.arrive_and_wait();
    const auto before = test::elements<float>(world.rank(), 1000);
    auto data = before;
    std::string first;
    try {
      if (world.rank() == kOdd)
        test_case.odd(*comm, data);
      else if (test_case.broadcast)
        comm->broadcast(bytes_of(data), 0);
      else
        sum_of(*comm, data);
      // In a broadcast a rank may have its part before the others find out.
      comm->barrier();
      FAIL() << "rank " << world.rank() << " noticed nothing";
    } catch (const CollectiveMismatch& error) {
      first = error.what();
      const std::lock_guard lock(mutex);
      named.push_back(error.rank());
    } catch (const Timeout& error) {
      first = error.what();
      ADD_FAILURE() << "rank " << world.rank() << " only timed out: " << first;
    }
    // What a broadcast receives is no input.
    const bool receives =
        test_case.broadcast || (world.rank() == kOdd && std::string(test_case.name) == "operation");
    if (!receives) {
      EXPECT_TRUE(test::same_bits(data, before)) << "rank " << world.rank();
    }
    // Spent: the same again, whatever is called.
    try {
      comm->barrier();
      ADD_FAILURE() << "a spent communicator went on";
    } catch (const CommunicationError& error) {
      EXPECT_EQ(error.what(), first);
    }
  });
  EXPECT_EQ(named.size(), static_cast<std::size_t>(kRanks));
  // Control lines show all calls to all: the odd one is named, alike.
  if (transport == TransportKind::kSharedMemory) {
    EXPECT_THAT(named, testing::Each(kOdd));
  }
}

std::vector<std::tuple<TransportKind, Topology, int>> every_case() {
  std::vector<std::tuple<TransportKind, Topology, int>> all;
  for (int i = 0; i < static_cast<int>(cases().size()); ++i) {
    all.emplace_back(TransportKind::kSharedMemory, Topology::kAuto, i);
    all.emplace_back(TransportKind::kSharedMemory, Topology::kTree, i);
    all.emplace_back(TransportKind::kTcp, Topology::kTree, i);
    all.emplace_back(TransportKind::kTcp, Topology::kFullMesh, i);
    all.emplace_back(TransportKind::kTcp, Topology::kRing, i);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Ways, Mismatch, testing::ValuesIn(every_case()), [](const auto& info) {
  return name_of(std::get<0>(info.param)) + "_" + name_of(std::get<1>(info.param)) + "_" +
         cases()[std::get<2>(info.param)].name;
});

TEST(MismatchOfPlans, IsFound) {
  for (const auto transport : {TransportKind::kSharedMemory, TransportKind::kTcp}) {
    run_threads(2, [&](World world) {
      auto comm =
          Communicator::create(world, {.transport = transport, .timeout = std::chrono::seconds(2)});
      // The second rank has one block under both plans, but of another size.
      const BlockPlan plan =
          world.rank() == 0 ? BlockPlan({{0, 2}, {2, 2}}) : BlockPlan({{0, 2}, {2, 1}});
      const std::vector<float> block(100, 1.0f);
      const std::span<const std::byte> mine = bytes_of(block);
      std::vector<float> out(100);
      EXPECT_THROW(comm->reduce_blocks(plan, {&mine, 1}, bytes_of(out), DType::kFloat32),
                   CollectiveMismatch);
    });
  }
}

TEST(MismatchOfMessages, IsFound) {
  for (const auto transport : {TransportKind::kSharedMemory, TransportKind::kTcp}) {
    run_threads(2, [&](World world) {
      auto comm =
          Communicator::create(world, {.transport = transport, .timeout = std::chrono::seconds(2)});
      std::vector<std::byte> data(100);
      if (world.rank() == 0) {
        comm->send(std::span(data).first(40), 1);
        EXPECT_THROW(comm->receive(data, 1), CommunicationError);
      } else {
        EXPECT_THROW(comm->receive(data, 0), CollectiveMismatch);
      }
    });
  }
}

}  // namespace
}  // namespace yoke::comm
