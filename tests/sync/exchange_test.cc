// Both exchanges give the canonical mean, for every bucket size; what goes over a network is what
// the formula in comm/communicator.h says.

#include "yoke/sync/exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/spawn_ranks.h"
#include "tests/sync/canonical_sum.h"
#include "yoke/base/random.h"
#include "yoke/sync/network_exchange.h"
#include "yoke/sync/shared_exchange.h"

namespace yoke::sync {
namespace {

using comm::BlockPlan;
using comm::Communicator;
using comm::Topology;
using comm::TransportKind;
using tensor::ArenaLayout;

constexpr std::size_t kParameters = 6;

ArenaLayout::Entry entry(const std::string& name, std::size_t elements, DType dtype) {
  ArenaLayout::Entry entry;
  entry.name = name;
  entry.dtype = dtype;
  entry.elements = elements;
  return entry;
}

/// Parameters of two dtypes, one without elements, and two buffers behind them.
const ArenaLayout& layout() {
  static const ArenaLayout layout(
      {entry("a", 3000, DType::kFloat32), entry("none", 0, DType::kFloat32),
       entry("b", 20000, DType::kFloat32), entry("c", 2500, DType::kFloat64),
       entry("d", 1, DType::kFloat64), entry("e", 9000, DType::kFloat32),
       entry("buffers/x", 1500, DType::kFloat32), entry("buffers/y", 10, DType::kFloat32)});
  return layout;
}

template <typename T>
std::vector<T> leaf_gradient(const ArenaLayout::Entry& entry, std::int64_t leaf) {
  const RandomKey key = RandomKey(21).with(entry.name).with(static_cast<std::uint64_t>(leaf));
  std::vector<T> values(entry.elements);
  key.normal(std::span<T>(values));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] *= std::exp2(static_cast<T>(key.bits(i) % 10));
  return values;
}

template <typename T>
std::vector<T> sum_of(const ArenaLayout::Entry& entry, std::int64_t first, std::int64_t count) {
  std::vector<test::Gradient<T>> leaves;
  for (std::int64_t leaf = first; leaf < first + count; ++leaf)
    leaves.emplace_back(leaf_gradient<T>(entry, leaf));
  return *test::canonical_sum(leaves, 1);
}

/// Writes what the folder would: the sums of this rank's blocks.
void write_blocks(Exchange& exchange, const BlockPlan& plan, int rank) {
  const auto [first, count] = plan.blocks_of(rank);
  for (int b = 0; b < count; ++b) {
    const comm::Block& block = plan.blocks()[static_cast<std::size_t>(first + b)];
    for (const auto& entry : layout().entries()) {
      std::byte* at = exchange.block(b) + entry.offset;
      const auto put = [&]<typename T>(T) {
        const auto sum = sum_of<T>(entry, block.first(), block.last() - block.first() + 1);
        std::copy(sum.begin(), sum.end(), reinterpret_cast<T*>(at));
      };
      entry.dtype == DType::kFloat64 ? put(double{}) : put(float{});
    }
  }
}

void expect_mean(Exchange& exchange, std::int64_t leaves, double divisor) {
  for (const auto& entry : layout().entries()) {
    const std::byte* at = exchange.reduced() + entry.offset;
    const auto check = [&]<typename T>(T) {
      auto want = sum_of<T>(entry, 0, leaves);
      for (T& value : want) value = value / static_cast<T>(divisor);
      const std::span<const T> got(reinterpret_cast<const T*>(at), entry.elements);
      EXPECT_TRUE(test::same_bits<T>(got, want)) << entry.name << ", " << leaves << " leaves";
    };
    entry.dtype == DType::kFloat64 ? check(double{}) : check(float{});
  }
}

struct Setting {
  TransportKind transport;
  Topology topology;
  int ranks;
  std::size_t bucket_bytes;
};

/// Steps of different numbers of leaves, with tensors ready in another order on every rank.
void run_steps(const Setting& setting, Exchange& exchange, Communicator& communicator) {
  std::uint64_t step = 0;
  for (const std::int64_t leaves : {8, 7, 1}) {
    const BlockPlan plan = BlockPlan::even(leaves, setting.ranks);
    exchange.begin(HeldBlocks::in_order(plan));
    write_blocks(exchange, plan, communicator.rank());
    const auto order = RandomKey(++step)
                           .with(static_cast<std::uint64_t>(communicator.rank()))
                           .permutation(static_cast<std::int64_t>(layout().size()));
    if (plan.range_of(communicator.rank()).second > 0) {
      for (const std::int64_t e : order) exchange.ready(static_cast<std::size_t>(e));
    }
    exchange.backward_done();
    communicator.barrier();
    exchange.reduce(static_cast<double>(leaves * 3));
    communicator.barrier();
    expect_mean(exchange, leaves, static_cast<double>(leaves * 3));
    communicator.barrier();
  }
}

constexpr std::size_t kEverything = std::size_t{1} << 40;

TEST(Exchange, IsTheCanonicalMeanForEveryTransportAndNumberOfRanks) {
  for (const int ranks : {1, 2, 3, 5, 9}) {
    for (const auto& [transport, topology] :
         {std::pair{TransportKind::kSharedMemory, Topology::kAuto},
          std::pair{TransportKind::kSharedMemory, Topology::kTree},
          std::pair{TransportKind::kTcp, Topology::kAuto},
          std::pair{TransportKind::kTcp, Topology::kTree}}) {
      if (transport == TransportKind::kTcp && ranks == 9) continue;
      const Setting setting{transport, topology, ranks, 100000};
      test::run_threads(ranks, [&](World world) {
        auto communicator = Communicator::create(world, {.transport = transport});
        auto exchange = Exchange::make(*communicator, layout(),
                                       {.bucket_bytes = setting.bucket_bytes,
                                        .topology = topology,
                                        .parameters = kParameters,
                                        .most_blocks = 5});
        EXPECT_EQ(exchange->shared(),
                  transport == TransportKind::kSharedMemory && topology == Topology::kAuto);
        run_steps(setting, *exchange, *communicator);
      });
    }
  }
}

// Case 7 of the sharp tests of parallel strategies: one byte, 1 KiB, 1 MiB, and everything at once.
TEST(NetworkExchange, TheSizeOfBucketsChangesNoBit) {
  for (const std::size_t bucket :
       {std::size_t{1}, std::size_t{1024}, std::size_t{1} << 20, kEverything}) {
    const Setting setting{TransportKind::kTcp, Topology::kFullMesh, 3, bucket};
    test::run_threads(3, [&](World world) {
      auto communicator = Communicator::create(world, {.transport = setting.transport});
      NetworkExchange exchange(*communicator, layout(),
                               {.bucket_bytes = bucket,
                                .topology = setting.topology,
                                .parameters = kParameters,
                                .most_blocks = 5});
      run_steps(setting, exchange, *communicator);
    });
  }
}

/// Elements and width of the buckets: from the back, through tensors of one dtype, parameters and
/// buffers apart.
std::vector<std::pair<std::uint64_t, std::uint64_t>> buckets(std::size_t bucket_bytes) {
  const std::size_t unit = layout().unit_bytes();
  const std::size_t most = std::max(unit, (bucket_bytes + unit - 1) / unit * unit);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
  const auto cut = [&](std::size_t bytes, std::size_t width) {
    for (; bytes > 0; bytes -= std::min(bytes, most))
      all.emplace_back(std::min(bytes, most) / width, width);
  };
  const auto units = [&](std::initializer_list<std::size_t> tensors) {
    std::size_t bytes = 0;
    for (const std::size_t t : tensors) bytes += (layout()[t].bytes() + unit - 1) / unit * unit;
    return bytes;
  };
  cut(units({5}), 4);
  cut(units({3, 4}), 8);
  cut(units({0, 2}), 4);
  cut(units({6, 7}), 4);
  return all;
}

/// Elements of slice r when `count` are cut as even as can be at multiples of 1,024.
std::uint64_t slice(std::uint64_t count, std::uint64_t ranks, std::uint64_t r) {
  const std::uint64_t grains = (count + 1023) / 1024;
  const auto cut = [&](std::uint64_t part) {
    return std::min(count, grains * part / ranks * 1024);
  };
  return cut(r + 1) - cut(r);
}

TEST(NetworkExchange, SendsTheBytesAndMessagesOfTheFormula) {
  for (const int ranks : {2, 3}) {
    for (const std::size_t bucket : {std::size_t{1}, std::size_t{20000}, kEverything}) {
      const BlockPlan plan = BlockPlan::even(7, ranks);
      test::run_threads(ranks, [&](World world) {
        auto communicator = Communicator::create(world, {.transport = TransportKind::kTcp});
        NetworkExchange exchange(
            *communicator, layout(),
            {.bucket_bytes = bucket, .parameters = kParameters, .most_blocks = 5});
        exchange.begin(HeldBlocks::in_order(plan));
        write_blocks(exchange, plan, world.rank());
        exchange.backward_done();
        exchange.reduce(7);
        const auto rank = static_cast<std::uint64_t>(world.rank());
        const auto p = static_cast<std::uint64_t>(ranks);
        const auto blocks = static_cast<std::uint64_t>(plan.blocks_of(world.rank()).second);
        std::uint64_t bytes = 0, messages = 0;
        for (const auto& [count, width] : buckets(bucket)) {
          const std::uint64_t own = slice(count, p, rank);
          bytes += (blocks * (count - own) + (p - 1) * own) * width;
          messages += (p - 1) * (blocks + 1);
        }
        std::uint64_t calls = 0, sent = 0, sent_messages = 0;
        for (const auto& line : communicator->traffic()) {
          if (line.operation != "reduce_blocks") continue;
          calls += line.calls;
          sent += line.payload_bytes;
          sent_messages += line.messages;
        }
        EXPECT_EQ(calls, buckets(bucket).size());
        EXPECT_EQ(sent, bytes) << "rank " << rank << " of " << p << ", buckets of " << bucket;
        EXPECT_EQ(sent_messages, messages);
      });
    }
  }
}

TEST(NetworkExchange, MayBeDestroyedBetweenBackwardAndReduce) {
  test::run_threads(2, [&](World world) {
    auto communicator = Communicator::create(world, {.transport = TransportKind::kTcp});
    NetworkExchange exchange(*communicator, layout(),
                             {.parameters = kParameters, .most_blocks = 5});
    const BlockPlan plan = BlockPlan::even(4, 2);
    exchange.begin(HeldBlocks::in_order(plan));
    write_blocks(exchange, plan, world.rank());
    exchange.backward_done();
  });
}

}  // namespace
}  // namespace yoke::sync
