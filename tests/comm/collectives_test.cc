// Every all-reduce against one thread that adds: shapes x ranks x lengths x dtypes, in shared
// memory and over TCP.

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <tuple>

#include "tests/comm/sample.h"
#include "tests/support/spawn_ranks.h"
#include "yoke/comm/communicator.h"

namespace yoke::comm {
namespace {

using test::bytes_of;
using test::elements;
using test::run_threads;

struct Shape {
  TransportKind transport;
  Topology topology;
};

std::string name_of_shape(const Shape& shape) {
  if (shape.topology == Topology::kAuto) return name_of(shape.transport);
  return name_of(shape.transport) + "_" + name_of(shape.topology);
}

class AllReduce : public testing::TestWithParam<std::tuple<Shape, int>> {
 protected:
  Shape shape() const { return std::get<0>(GetParam()); }
  int ranks() const { return std::get<1>(GetParam()); }
  bool canonical() const { return keeps_canonical_order(shape().topology); }
  CommunicatorOptions options() const {
    return {.transport = shape().transport, .topology = shape().topology};
  }

  std::vector<std::size_t> counts() const {
    const auto p = static_cast<std::size_t>(ranks());
    // The last goes through shared memory in several chunks.
    return {0, 1, p - 1, p, p + 1, 10007, 70001};
  }

  /// Sums on all ranks and holds the results against the counter, and against each other.
  template <typename T>
  void check_sums(Communicator& comm, std::size_t count,
                  std::vector<std::vector<T>>& results) const {
    auto data = elements<T>(comm.rank(), count, count);
    comm.all_reduce(bytes_of(data), test::Element<T>::dtype, ReduceOp::kSum);
    results[comm.rank()] = data;
    comm.barrier();
    ASSERT_TRUE(test::same_bits(results[0], data))
        << "rank " << comm.rank() << " differs from rank 0 at " << count;
    if (comm.rank() != 0) return;
    for (std::size_t i = 0; i < count; ++i) {
      const T want = test::counter_sum<T>(
          ranks(), [&](std::int64_t r) { return test::element<T>(r, i, count); });
      if (canonical() || std::is_integral_v<T>) {
        ASSERT_EQ(std::memcmp(&data[i], &want, sizeof(T)), 0) << i << " of " << count;
        continue;
      }
      double magnitude = 0;
      for (int r = 0; r < ranks(); ++r)
        magnitude += std::abs(test::value_of(test::element<T>(r, i, count)));
      const double epsilon = std::is_same_v<T, test::BFloat16> ? 0x1p-8 : 0x1p-24;
      ASSERT_NEAR(test::value_of(data[i]), test::value_of(want), 2 * ranks() * epsilon * magnitude)
          << i << " of " << count;
    }
  }
};

TEST_P(AllReduce, SumsAreTheCountersOnEveryRank) {
  std::vector<std::vector<std::int64_t>> integers(ranks());
  std::vector<std::vector<float>> floats(ranks());
  std::vector<std::vector<test::BFloat16>> halves(ranks());
  run_threads(ranks(), [&](World world) {
    auto comm = Communicator::create(world, options());
    for (const std::size_t count : counts()) {
      check_sums(*comm, count, integers);
      check_sums(*comm, count, floats);
      if (count <= 10007) check_sums(*comm, count, halves);
    }
  });
}

TEST_P(AllReduce, MeanIsTheSumDividedOnceAndTheOthersAreExact) {
  run_threads(ranks(), [&](World world) {
    auto comm = Communicator::create(world, options());
    for (const std::size_t count : {std::size_t{5}, std::size_t{3000}, std::size_t{40000}}) {
      auto mean = elements<float>(world.rank(), count);
      auto sum = mean;
      comm->all_reduce(bytes_of(mean), DType::kFloat32, ReduceOp::kMean);
      comm->all_reduce(bytes_of(sum), DType::kFloat32, ReduceOp::kSum);
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(mean[i], sum[i] / static_cast<float>(ranks())) << i << " of " << count;
      }
      auto most = elements<std::int32_t>(world.rank(), count);
      auto least = most;
      auto product = most;
      comm->all_reduce(bytes_of(most), DType::kInt32, ReduceOp::kMax);
      comm->all_reduce(bytes_of(least), DType::kInt32, ReduceOp::kMin);
      comm->all_reduce(bytes_of(product), DType::kInt32, ReduceOp::kProduct);
      for (std::size_t i = 0; i < count; ++i) {
        std::int32_t want_most = test::element<std::int32_t>(0, i);
        std::int32_t want_least = want_most;
        std::uint32_t want_product = 1;
        for (int r = 0; r < ranks(); ++r) {
          want_most = std::max(want_most, test::element<std::int32_t>(r, i));
          want_least = std::min(want_least, test::element<std::int32_t>(r, i));
          want_product *= static_cast<std::uint32_t>(test::element<std::int32_t>(r, i));
        }
        ASSERT_EQ(most[i], want_most);
        ASSERT_EQ(least[i], want_least);
        ASSERT_EQ(product[i], static_cast<std::int32_t>(want_product));
      }
    }
  });
}

std::vector<std::tuple<Shape, int>> every_shape() {
  std::vector<std::tuple<Shape, int>> all;
  for (const auto transport : {TransportKind::kSharedMemory, TransportKind::kTcp}) {
    for (const auto topology :
         {Topology::kAuto, Topology::kTree, Topology::kRing, Topology::kFullMesh}) {
      const int most = transport == TransportKind::kTcp ? 5 : 9;
      for (int ranks = 1; ranks <= most; ++ranks)
        all.emplace_back(Shape{transport, topology}, ranks);
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, AllReduce, testing::ValuesIn(every_shape()), [](const auto& info) {
  return name_of_shape(std::get<0>(info.param)) + "_" + std::to_string(std::get<1>(info.param));
});

TEST(AllReduceInSections, ReducesWhereTheDataLies) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    run_threads(ranks, [&](World world) {
      auto comm = Communicator::create(world);
      const std::size_t count = 30001;
      auto other = comm->share(64);
      auto shared = comm->share(count * sizeof(float) + 256);
      ASSERT_EQ(shared->of(world.rank()).size(), count * sizeof(float) + 256);
      for (const std::size_t offset : {0, 64}) {
        const auto place = shared->of(world.rank()).subspan(offset, count * sizeof(float));
        const auto mine = elements<float>(world.rank(), count, offset);
        std::memcpy(place.data(), mine.data(), place.size());
        comm->all_reduce(place, DType::kFloat32, ReduceOp::kSum);
        std::vector<float> want(count);
        for (std::size_t i = 0; i < count; ++i) {
          want[i] = test::counter_sum<float>(
              ranks, [&](auto r) { return test::element<float>(r, i, offset); });
        }
        for (int r = 0; r < ranks; ++r) {
          ASSERT_EQ(std::memcmp(shared->of(r).data() + offset, want.data(), place.size()), 0) << r;
        }
        comm->barrier();
      }
    });
  }
}

TEST(AllReduceInSections, StagesWhenSomeRanksDataLiesElsewhere) {
  const int ranks = 3;
  run_threads(ranks, [&](World world) {
    auto comm = Communicator::create(world);
    const std::size_t count = 100001;
    auto shared = comm->share(count * sizeof(float) + 128);
    std::vector<float> want(count), own(count);
    for (std::size_t i = 0; i < count; ++i) {
      want[i] = test::counter_sum<float>(ranks, [&](auto r) { return test::element<float>(r, i); });
    }
    // A private buffer on one rank, another offset on the next; then on every rank but one.
    for (const int outsider : {0, 1, 2}) {
      const auto mine = elements<float>(world.rank(), count);
      std::span<std::byte> place = shared->of(world.rank()).first(count * sizeof(float));
      if (world.rank() == outsider) place = bytes_of(own);
      if (world.rank() == (outsider + 1) % ranks) place = shared->of(world.rank()).subspan(128);
      std::memcpy(place.data(), mine.data(), place.size());
      comm->all_reduce(place, DType::kFloat32, ReduceOp::kSum);
      ASSERT_EQ(std::memcmp(place.data(), want.data(), place.size()), 0) << outsider;
    }
  });
}

TEST(AllReduceInSections, SectionsAreZeroAndAtPages) {
  run_threads(3, [&](World world) {
    auto comm = Communicator::create(world);
    auto shared = comm->share(5000);
    for (int r = 0; r < 3; ++r) {
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(shared->of(r).data()) % 4096, 0u);
      for (const std::byte byte : shared->of(r)) ASSERT_EQ(byte, std::byte{0});
    }
    comm->barrier();
    // They outlive the communicator.
    comm.reset();
    shared->of(world.rank())[0] = std::byte{1};
  });
}

}  // namespace
}  // namespace yoke::comm
