// Started calls, abort, the end of a communicator, names and choices.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/comm/sample.h"
#include "tests/support/spawn_ranks.h"
#include "yoke/base/error.h"
#include "yoke/comm/communicator.h"

namespace yoke::comm {
namespace {

using std::chrono::milliseconds;
using test::bytes_of;
using test::run_threads;

class Lifecycle : public testing::TestWithParam<TransportKind> {
 protected:
  CommunicatorOptions options() const { return {.transport = GetParam()}; }
};

TEST_P(Lifecycle, StartedCallsRunInOrderAndBeforeABlockingOne) {
  run_threads(3, [&](World world) {
    auto comm = Communicator::create(world, options());
    std::vector<std::vector<float>> data(20);
    std::vector<Work> works;
    std::vector<int> order;
    for (int i = 0; i < 20; ++i) {
      data[i] = test::elements<float>(world.rank(), 500 * i, i);
      works.push_back(comm->start([&, i](Communicator& inner) {
        inner.all_reduce(bytes_of(data[i]), DType::kFloat32, ReduceOp::kSum);
        order.push_back(i);
      }));
    }
    comm->barrier();
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(works[i].done());
      works[i].wait();
      works[i].wait();
      ASSERT_EQ(order[i], i);
      for (std::size_t k = 0; k < data[i].size(); ++k) {
        ASSERT_EQ(data[i][k], test::counter_sum<float>(
                                  3, [&](auto r) { return test::element<float>(r, k, i); }));
      }
    }
  });
}

TEST_P(Lifecycle, AFailureOfAStartedCallIsThrownByWait) {
  run_threads(2, [&](World world) {
    auto comm = Communicator::create(world, options());
    const Work work = comm->start([](Communicator&) { throw std::runtime_error("of the caller"); });
    EXPECT_THROW(work.wait(), std::runtime_error);
    EXPECT_THROW(work.wait(), std::runtime_error);
    // Its own business: the communicator goes on.
    comm->barrier();
    Work().wait();
    EXPECT_TRUE(Work().done());
  });
}

TEST_P(Lifecycle, DestructionRunsWhatWasStarted) {
  std::atomic<int> ran{0};
  run_threads(2, [&](World world) {
    auto comm = Communicator::create(world, options());
    for (int i = 0; i < 5; ++i) {
      comm->start([&](Communicator& inner) {
        inner.barrier();
        ran.fetch_add(1);
      });
    }
    comm.reset();
  });
  EXPECT_EQ(ran.load(), 10);
}

/// The longest time between abort() on rank 1 and the end of a pending call, on ranks 0 and 1.
Clock::duration longest_end_of_a_call(const CommunicatorOptions& options) {
  const int ranks = 3;
  std::atomic<Clock::rep> aborted_at{0};
  std::atomic<Clock::rep> longest{0};
  std::atomic<int> ready{0};
  std::atomic<int> failed{0};
  run_threads(ranks, [&](World world) {
    auto comm = Communicator::create(world, options);
    comm->barrier();
    ready.fetch_add(1);
    std::atomic<bool> calling{false};
    std::jthread aborter;
    if (world.rank() == 1) {
      aborter = std::jthread([&] {
        while (!calling.load() || ready.load() < ranks) std::this_thread::yield();
        aborted_at = Clock::now().time_since_epoch().count();
        comm->abort("a test wants it");
      });
    }
    // Rank 2 stays outside until the others have failed.
    if (world.rank() != 2) {
      calling = true;
      try {
        comm->barrier();
        ADD_FAILURE() << "a barrier without rank 2";
      } catch (const Aborted& error) {
        EXPECT_EQ(error.generation(), world.generation());
        EXPECT_THAT(error.what(), testing::HasSubstr("a test wants it"));
        EXPECT_THAT(error.what(), testing::HasSubstr("rank 1"));
        const auto since = Clock::now().time_since_epoch().count() - aborted_at.load();
        for (auto old = longest.load();
             old < since && !longest.compare_exchange_weak(old, since);) {
        }
      }
      failed.fetch_add(1);
    } else {
      while (failed.load() < 2) std::this_thread::yield();
    }
    EXPECT_THROW(comm->barrier(), Aborted);
    EXPECT_THROW(comm->start([](Communicator& inner) { inner.barrier(); }).wait(), Aborted);
  });
  return Clock::duration(longest.load());
}

TEST_P(Lifecycle, AbortEndsPendingCallsOnAllRanksWithin100ms) {
  // On a machine that others keep busy a rank may not even be scheduled in that time: one of
  // several tries must do.
  Clock::duration best = Clock::duration::max();
  for (int attempt = 0; attempt < 20 && best >= milliseconds(100); ++attempt) {
    best = std::min(best, longest_end_of_a_call(options()));
  }
  EXPECT_LT(best, milliseconds(100));
}

TEST_P(Lifecycle, TimeoutNamesTheMissingRanksAndTheCallAndIsThrownAgain) {
  std::atomic<int> gave_up{0};
  run_threads(4, [&](World world) {
    auto comm =
        Communicator::create(world, {.transport = GetParam(), .timeout = milliseconds(300)});
    if (world.rank() == 1 || world.rank() == 3) {
      // Alive and elsewhere until the others have given up; then it learns what happened.
      while (gave_up.load() < 2) std::this_thread::yield();
      EXPECT_THROW(comm->barrier(), CommunicationError);
      return;
    }
    std::vector<float> data(10);
    std::string first;
    try {
      comm->all_reduce(bytes_of(data), DType::kFloat32, ReduceOp::kSum, Topology::kFullMesh);
      FAIL() << "went on without ranks 1 and 3";
    } catch (const Timeout& error) {
      EXPECT_THAT(error.operation(), testing::HasSubstr("all_reduce"));
      EXPECT_EQ(error.missing(), (std::vector<int>{1, 3}));
      first = error.what();
      gave_up.fetch_add(1);
    }
    try {
      comm->barrier();
      FAIL() << "a spent communicator went on";
    } catch (const Timeout& error) {
      EXPECT_EQ(error.what(), first);
      EXPECT_EQ(error.missing(), (std::vector<int>{1, 3}));
    }
  });
}

TEST_P(Lifecycle, DestroyingAfterAFailureDoesNotWait) {
  std::barrier created(2);
  run_threads(2, [&](World world) {
    auto comm = Communicator::create(world, options());
    created.arrive_and_wait();
    if (world.rank() == 0) comm->abort("to see the end");
    for (int i = 0; i < 100; ++i) comm->start([](Communicator& inner) { inner.barrier(); });
    const auto start = Clock::now();
    comm.reset();
    EXPECT_LT(Clock::now() - start, milliseconds(1000));
  });
}

TEST_P(Lifecycle, ANameMayBeUsedAgainAndTwoLiveSideBySide) {
  run_threads(2, [&](World world) {
    for (int round = 0; round < 3; ++round) Communicator::create(world, options())->barrier();
    auto one = Communicator::create(world, {.transport = GetParam(), .name = "one"});
    auto two = Communicator::create(world, {.transport = GetParam(), .name = "two"});
    for (int i = 0; i < 10; ++i) {
      std::vector<std::int64_t> a{1}, b{10};
      one->all_reduce(bytes_of(a), DType::kInt64, ReduceOp::kSum);
      two->all_reduce(bytes_of(b), DType::kInt64, ReduceOp::kSum);
      ASSERT_EQ(a[0], 2);
      ASSERT_EQ(b[0], 20);
    }
    // A failure of one is no failure of the other.
    one->abort("only this one");
    two->barrier();
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, Lifecycle,
                         testing::Values(TransportKind::kSharedMemory, TransportKind::kTcp),
                         [](const auto& info) { return name_of(info.param); });

TEST(Choice, AutoTakesSharedMemoryOnOneHost) {
  run_threads(2, [&](World world) {
    auto comm = Communicator::create(world);
    EXPECT_EQ(comm->transport(), TransportKind::kSharedMemory);
    EXPECT_EQ(comm->rank(), world.rank());
    EXPECT_EQ(comm->size(), 2);
  });
  for (const auto& outcome : test::run_processes(
           3, [](World world) { return name_of(Communicator::create(world)->transport()); })) {
    EXPECT_EQ(outcome.text, "shm") << outcome;
  }
}

TEST(Choice, NamesGoThereAndBack) {
  for (const auto topology :
       {Topology::kAuto, Topology::kTree, Topology::kRing, Topology::kFullMesh}) {
    EXPECT_EQ(topology_from(name_of(topology)), topology);
    EXPECT_EQ(keeps_canonical_order(topology), topology != Topology::kRing);
  }
  for (const auto kind :
       {TransportKind::kAuto, TransportKind::kSharedMemory, TransportKind::kTcp}) {
    EXPECT_EQ(transport_from(name_of(kind)), kind);
  }
  try {
    topology_from("torus");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("auto, tree, ring, full_mesh"));
  }
}

}  // namespace
}  // namespace yoke::comm
