// The operations besides all_reduce, over every way of moving bytes.

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <tuple>

#include "tests/comm/sample.h"
#include "tests/support/spawn_ranks.h"
#include "yoke/base/error.h"
#include "yoke/comm/communicator.h"

namespace yoke::comm {
namespace {

using test::bytes_of;
using test::elements;
using test::run_threads;

class Operations : public testing::TestWithParam<std::tuple<TransportKind, Topology, int>> {
 protected:
  int ranks() const { return std::get<2>(GetParam()); }
  CommunicatorOptions options() const {
    return {.transport = std::get<0>(GetParam()), .topology = std::get<1>(GetParam())};
  }
  template <typename Body>
  void run(const Body& body) {
    run_threads(ranks(), [&](World world) {
      auto comm = Communicator::create(world, options());
      // 0 elements, fewer than a control line holds, one chunk, several.
      for (const std::size_t count : {0, 1, 3, 1000, 100003}) body(*comm, world.rank(), count);
    });
  }
  template <typename T>
  T sum(std::size_t i) const {
    return test::counter_sum<T>(ranks(), [&](auto r) { return test::element<T>(r, i); });
  }
};

TEST_P(Operations, ReduceScatterGivesEachRankItsPartOfTheSum) {
  run([&](Communicator& comm, int rank, std::size_t count) {
    const auto in = elements<std::int64_t>(rank, count * ranks());
    std::vector<std::int64_t> out(count);
    comm.reduce_scatter(bytes_of(in), bytes_of(out), DType::kInt64, ReduceOp::kSum);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], sum<std::int64_t>(rank * count + i));
    if (std::get<1>(GetParam()) == Topology::kRing) return;
    const auto values = elements<float>(rank, count * ranks());
    std::vector<float> reduced(count);
    comm.reduce_scatter(bytes_of(values), bytes_of(reduced), DType::kFloat32, ReduceOp::kMean);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(reduced[i], sum<float>(rank * count + i) / static_cast<float>(ranks()));
    }
  });
}

TEST_P(Operations, AllGatherPutsThePartsInRankOrder) {
  run([&](Communicator& comm, int rank, std::size_t count) {
    std::vector<std::int32_t> want, out(count * ranks());
    for (int r = 0; r < ranks(); ++r) {
      const auto part = elements<std::int32_t>(r, count);
      want.insert(want.end(), part.begin(), part.end());
    }
    const auto in = elements<std::int32_t>(rank, count);
    comm.all_gather(bytes_of(in), bytes_of(out));
    ASSERT_EQ(out, want);
    // In place: the own part of the output is the input.
    std::vector<std::int32_t> place(count * ranks());
    std::copy(in.begin(), in.end(), place.begin() + rank * count);
    comm.all_gather(bytes_of(place).subspan(rank * count * 4, count * 4), bytes_of(place));
    ASSERT_EQ(place, want);
  });
}

TEST_P(Operations, ReduceChangesTheRootAlone) {
  run([&](Communicator& comm, int rank, std::size_t count) {
    for (const int root : {0, ranks() - 1}) {
      const auto before = elements<float>(rank, count);
      auto data = before;
      comm.reduce(bytes_of(data), DType::kFloat32, ReduceOp::kSum, root);
      if (rank != root) {
        ASSERT_TRUE(test::same_bits(data, before));
        continue;
      }
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(data[i], sum<float>(i));
    }
  });
}

TEST_P(Operations, BroadcastGivesTheRootsData) {
  run([&](Communicator& comm, int rank, std::size_t count) {
    for (int root = 0; root < ranks(); ++root) {
      auto data = elements<std::int32_t>(rank, count);
      comm.broadcast(bytes_of(data), root);
      ASSERT_EQ(data, elements<std::int32_t>(root, count));
    }
  });
}

TEST_P(Operations, AllToAllIsATransposition) {
  run([&](Communicator& comm, int rank, std::size_t count) {
    const auto in = elements<std::int32_t>(rank, count * ranks());
    std::vector<std::int32_t> out(count * ranks());
    comm.all_to_all(bytes_of(in), bytes_of(out));
    for (int r = 0; r < ranks(); ++r) {
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(out[r * count + i], test::element<std::int32_t>(r, rank * count + i));
      }
    }
  });
}

TEST_P(Operations, GatherAndScatterAreInverse) {
  run([&](Communicator& comm, int rank, std::size_t count) {
    const int root = ranks() / 2;
    const auto in = elements<std::int32_t>(rank, count);
    std::vector<std::int32_t> all(rank == root ? count * ranks() : 0);
    comm.gather(bytes_of(in), bytes_of(all), root);
    for (int r = 0; rank == root && r < ranks(); ++r) {
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(all[r * count + i], test::element<std::int32_t>(r, i));
    }
    std::vector<std::int32_t> back(count);
    comm.scatter(bytes_of(all), bytes_of(back), root);
    ASSERT_EQ(back, in);
  });
}

TEST_P(Operations, MessagesBetweenTwoRanksKeepTheirOrder) {
  if (ranks() == 1) return;
  run([&](Communicator& comm, int rank, std::size_t count) {
    const int next = (rank + 1) % ranks();
    const int before = (rank + ranks() - 1) % ranks();
    for (int i = 0; i < 3; ++i) {
      const auto data = elements<std::int32_t>(rank, count + i, i);
      std::vector<std::int32_t> arrived(count + i);
      // Rank 0 sends first, so that messages larger than any buffer cannot block the circle.
      if (rank == 0) comm.send(bytes_of(data), next);
      comm.receive(bytes_of(arrived), before);
      if (rank != 0) comm.send(bytes_of(data), next);
      ASSERT_EQ(arrived, elements<std::int32_t>(before, count + i, i));
    }
    comm.barrier();
  });
}

TEST_P(Operations, NobodyLeavesABarrierBeforeAllHaveEntered) {
  std::atomic<int> entered{0};
  run_threads(ranks(), [&](World world) {
    auto comm = Communicator::create(world, options());
    for (int round = 1; round <= 50; ++round) {
      entered.fetch_add(1);
      comm->barrier();
      ASSERT_GE(entered.load(), round * ranks());
      comm->barrier();
    }
  });
}

TEST_P(Operations, ArgumentsThatCannotBeRightAreRefusedAndSpendNothing) {
  run_threads(ranks(), [&](World world) {
    auto comm = Communicator::create(world, options());
    std::vector<std::byte> bytes(6);
    EXPECT_THROW(comm->all_reduce(bytes, DType::kFloat32, ReduceOp::kSum), ConfigError);
    EXPECT_THROW(comm->all_reduce(bytes, DType::kBool, ReduceOp::kSum), ConfigError);
    EXPECT_THROW(comm->all_reduce(bytes, DType::kUInt8, ReduceOp::kMean), ConfigError);
    EXPECT_THROW(comm->broadcast(bytes, ranks()), ConfigError);
    EXPECT_THROW(comm->broadcast(bytes, -1), ConfigError);
    EXPECT_THROW(comm->send(bytes, world.rank()), ConfigError);
    EXPECT_THROW(comm->receive(bytes, ranks()), ConfigError);
    EXPECT_THROW(comm->all_gather(bytes, std::span(bytes).first(5)), ConfigError);
    EXPECT_THROW(comm->reduce_blocks(BlockPlan::even(4, ranks() + 1), {}, bytes, DType::kFloat32),
                 ConfigError);
    EXPECT_THROW(comm->reduce_blocks(BlockPlan::even(0, ranks()), {}, bytes, DType::kFloat32),
                 ConfigError);
    if (comm->transport() == TransportKind::kTcp) {
      EXPECT_THROW(comm->share(64), ConfigError);
    }
    comm->barrier();
  });
}

std::vector<std::tuple<TransportKind, Topology, int>> every_way() {
  std::vector<std::tuple<TransportKind, Topology, int>> all;
  for (const int ranks : {1, 2, 3, 5, 8}) {
    all.emplace_back(TransportKind::kSharedMemory, Topology::kAuto, ranks);
    all.emplace_back(TransportKind::kSharedMemory, Topology::kTree, ranks);
    all.emplace_back(TransportKind::kSharedMemory, Topology::kRing, ranks);
    if (ranks <= 3) all.emplace_back(TransportKind::kTcp, Topology::kAuto, ranks);
    if (ranks == 3) all.emplace_back(TransportKind::kTcp, Topology::kRing, ranks);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Ways, Operations, testing::ValuesIn(every_way()), [](const auto& info) {
  return name_of(std::get<0>(info.param)) + "_" + name_of(std::get<1>(info.param)) + "_" +
         std::to_string(std::get<2>(info.param));
});

}  // namespace
}  // namespace yoke::comm
