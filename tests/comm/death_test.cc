// Real processes that are killed or stopped: every survivor gets a typed error that names them, in
// time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>

#include "tests/comm/sample.h"
#include "tests/support/spawn_ranks.h"
#include "yoke/comm/communicator.h"

namespace yoke::comm {
namespace {

using test::bytes_of;
using test::Outcome;
using test::RankProcesses;
using test::with_world;

constexpr int kRanks = 4;

/// Stops one rank; the others kill it when they have failed, so that nothing waits for it to say
/// goodbye.
class Stoppable {
 public:
  Stoppable(Communicator& comm, int victim)
      : victim_(victim), stop_(comm.rank() == victim), pids_(comm.size()) {
    const pid_t self = getpid();
    comm.all_gather(std::as_bytes(std::span(&self, 1)), bytes_of(pids_));
  }
  template <typename Calls>
  void run(const Calls& calls) const {
    if (stop_) raise(SIGSTOP);
    try {
      calls();
    } catch (...) {
      kill(pids_[victim_], SIGKILL);
      throw;
    }
  }

 private:
  int victim_;
  bool stop_;
  std::vector<pid_t> pids_;
};

class Death : public testing::TestWithParam<std::tuple<TransportKind, Topology, int>> {
 protected:
  int victim() const { return std::get<2>(GetParam()); }
  CommunicatorOptions options(Clock::duration timeout = std::chrono::seconds(20)) const {
    return {.transport = std::get<0>(GetParam()),
            .topology = std::get<1>(GetParam()),
            .timeout = timeout};
  }

  static void reduce(Communicator& comm, std::size_t count) {
    auto data = test::elements<float>(comm.rank(), count);
    comm.all_reduce(bytes_of(data), DType::kFloat32, ReduceOp::kSum);
  }

  /// All but the victim end with `error`, naming it.
  void expect(const std::vector<Outcome>& outcomes, const std::string& error,
              double seconds) const {
    ASSERT_EQ(outcomes.size(), static_cast<std::size_t>(kRanks));
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank == victim()) continue;
      EXPECT_EQ(outcomes[rank].error, error) << "rank " << rank << ": " << outcomes[rank];
      EXPECT_EQ(outcomes[rank].ranks, std::vector<int>{victim()})
          << "rank " << rank << ": " << outcomes[rank];
      EXPECT_LT(outcomes[rank].seconds, seconds) << "rank " << rank;
    }
  }
};

TEST_P(Death, KilledBeforeTheFirstCollective) {
  const auto outcomes = test::run_processes(kRanks, [&](World world) {
    auto comm = Communicator::create(world, options());
    if (world.rank() == victim()) raise(SIGKILL);
    reduce(*comm, 1000);
  });
  EXPECT_EQ(outcomes[victim()].signal, SIGKILL);
  expect(outcomes, "PeerLost", 10);
}

TEST_P(Death, KilledInTheMiddle) {
  const auto outcomes = test::run_processes(kRanks, [&](World world) {
    auto comm = Communicator::create(world, options());
    std::atomic<int> rounds{0};
    std::jthread killer;
    if (world.rank() == victim()) {
      killer = std::jthread([&] {
        while (rounds.load() < 5) std::this_thread::yield();
        raise(SIGKILL);
      });
    }
    while (true) {
      reduce(*comm, 300'000);
      rounds.fetch_add(1);
    }
  });
  EXPECT_EQ(outcomes[victim()].signal, SIGKILL);
  expect(outcomes, "PeerLost", 15);
}

TEST_P(Death, KilledAfterTheLast) {
  const auto outcomes = test::run_processes(kRanks, [&](World world) {
    auto comm = Communicator::create(world, options());
    for (int i = 0; i < 3; ++i) reduce(*comm, 10);
    if (world.rank() == victim()) raise(SIGKILL);
    comm->barrier();
  });
  EXPECT_EQ(outcomes[victim()].signal, SIGKILL);
  expect(outcomes, "PeerLost", 10);
}

TEST_P(Death, StoppedIsATimeoutThatNamesIt) {
  const auto outcomes = test::run_processes(kRanks, [&](World world) {
    auto comm = Communicator::create(world, options(std::chrono::milliseconds(700)));
    const Stoppable stoppable(*comm, victim());
    stoppable.run([&] { reduce(*comm, 1000); });
  });
  expect(outcomes, "Timeout", 10);
}

TEST_P(Death, LeftInGoodOrderButTooEarly) {
  const auto outcomes = test::run_processes(kRanks, [&](World world) {
    auto comm = Communicator::create(world, options());
    reduce(*comm, 1000);
    if (world.rank() == victim()) return;
    reduce(*comm, 1000);
  });
  EXPECT_EQ(outcomes[victim()].exit_code, 0) << outcomes[victim()];
  expect(outcomes, "PeerLost", 10);
}

TEST_P(Death, AllLeaveInGoodOrder) {
  const auto outcomes = test::run_processes(kRanks, [&](World world) {
    auto comm = Communicator::create(world, options());
    for (int i = 0; i < 20; ++i) reduce(*comm, 1000);
  });
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.exit_code, 0) << outcome;
}

INSTANTIATE_TEST_SUITE_P(
    Ways, Death,
    testing::Values(std::tuple{TransportKind::kSharedMemory, Topology::kAuto, 0},
                    std::tuple{TransportKind::kSharedMemory, Topology::kAuto, 2},
                    std::tuple{TransportKind::kSharedMemory, Topology::kTree, 2},
                    std::tuple{TransportKind::kTcp, Topology::kAuto, 0},
                    std::tuple{TransportKind::kTcp, Topology::kAuto, 2},
                    std::tuple{TransportKind::kTcp, Topology::kRing, 1}),
    [](const auto& info) {
      return name_of(std::get<0>(info.param)) + "_" + name_of(std::get<1>(info.param)) + "_rank_" +
             std::to_string(std::get<2>(info.param));
    });

TEST(DeathOfAPeer, InAMessageBetweenTwoRanks) {
  for (const auto transport : {TransportKind::kSharedMemory, TransportKind::kTcp}) {
    const auto outcomes = test::run_processes(2, [&](World world) {
      auto comm = Communicator::create(world, {.transport = transport});
      if (world.rank() == 1) raise(SIGKILL);
      std::vector<std::byte> data(100);
      comm->receive(data, 1);
    });
    EXPECT_EQ(outcomes[0].error, "PeerLost") << outcomes[0];
    EXPECT_EQ(outcomes[0].ranks, std::vector<int>{1});
  }
}

TEST(DeathOfAPeer, WhoNeverComesIsNamed) {
  for (const auto transport :
       {TransportKind::kAuto, TransportKind::kSharedMemory, TransportKind::kTcp}) {
    const auto outcomes = test::run_processes(3, [&](World world) {
      if (world.rank() == 2) return;
      Communicator::create(world,
                           {.transport = transport, .timeout = std::chrono::milliseconds(500)});
    });
    for (const int rank : {0, 1}) {
      EXPECT_EQ(outcomes[rank].error, "Timeout") << outcomes[rank];
      EXPECT_EQ(outcomes[rank].ranks, std::vector<int>{2}) << outcomes[rank];
    }
  }
}

TEST(DeathOfAPeer, AnExceptionOnOneRankEndsTheOthers) {
  for (const auto transport : {TransportKind::kSharedMemory, TransportKind::kTcp}) {
    const auto outcomes = test::run_processes(3, [&](World world) {
      auto comm = Communicator::create(world, {.transport = transport});
      if (world.rank() == 1) throw std::runtime_error("a bug of the user's");
      comm->barrier();
    });
    EXPECT_THAT(outcomes[1].text, testing::HasSubstr("a bug of the user's"));
    for (const int rank : {0, 2}) EXPECT_EQ(outcomes[rank].error, "Aborted") << outcomes[rank];
  }
}

TEST(DeathOfAPeer, StoppedProcessBehindALiveOneIsStillTheOneNamed) {
  // 0 waits for 1, which waits for 2, which is stopped; only mailboxes are used, no control lines.
  const auto outcomes = test::run_processes(3, [&](World world) {
    auto comm = Communicator::create(world, {.transport = TransportKind::kSharedMemory,
                                             .timeout = std::chrono::milliseconds(700)});
    std::vector<std::byte> data(100);
    const Stoppable stoppable(*comm, 2);
    stoppable.run([&] { comm->receive(data, world.rank() + 1); });
  });
  for (const int rank : {0, 1}) {
    EXPECT_EQ(outcomes[rank].error, "Timeout") << outcomes[rank];
    EXPECT_EQ(outcomes[rank].ranks, std::vector<int>{2}) << outcomes[rank];
  }
}

}  // namespace
}  // namespace yoke::comm
