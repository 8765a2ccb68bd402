// Real processes that are killed or stopped while they exchange messages over TCP: every survivor
// ends in a typed error that names the right rank, in bounded time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/support/spawn_ranks.h"
#include "yoke/base/error.h"
#include "yoke/net/tcp/transport.h"

namespace yoke::net {
namespace {

using namespace std::chrono_literals;
using test::Outcome;
using test::run_processes;
using testing::ElementsAre;

constexpr int kRanks = 4;
constexpr int kVictim = 2;

/// Returns when all ranks are connected, so that what happens next is not about connecting.
std::unique_ptr<Transport> connect(const World& world) {
  auto transport = make_tcp_transport(world.place(), world.store(), "t",
                                      {.token = world.token(), .connect_timeout = 20s});
  if (world.store().add("connected", 1) == world.size()) {
    world.store().set("all connected", "");
  }
  world.store().get("all connected", Deadline::after(20s));
  return transport;
}

/// A ring: to the next rank, from the one before. Most ranks have nothing to do with the victim
/// directly.
void ring(Transport& transport, std::uint64_t sequence, std::size_t bytes, Deadline deadline) {
  std::vector<std::byte> out(bytes), in(bytes);
  CallTag tag;
  tag.sequence = sequence;
  int next = (transport.rank() + 1) % transport.size();
  int before = (transport.rank() + transport.size() - 1) % transport.size();
  transport.exchange(tag, std::vector<Outgoing>{{next, out}}, std::vector<Incoming>{{before, in}},
                     deadline);
}

/// Waits for a message that never comes, from the next rank that is not the victim.
void wait_for_nothing(Transport& transport, Deadline deadline) {
  int peer = (transport.rank() + 1) % transport.size();
  peer = peer == kVictim ? (peer + 1) % transport.size() : peer;
  std::byte byte{};
  CallTag tag;
  tag.sequence = 1'000'000;
  transport.exchange(tag, {}, std::vector<Incoming>{{peer, {&byte, 1}}}, deadline);
}

void expect_survivors_name_the_victim(const std::vector<Outcome>& outcomes,
                                      const std::string& error, double seconds) {
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto& outcome = outcomes[static_cast<std::size_t>(rank)];
    if (rank != kVictim) {
      EXPECT_EQ(outcome.error, error) << "rank " << rank << ": " << outcome;
      EXPECT_THAT(outcome.ranks, ElementsAre(kVictim)) << "rank " << rank << ": " << outcome;
      EXPECT_LT(outcome.seconds, seconds) << "rank " << rank << ": " << outcome;
    }
  }
}

TEST(TcpFaults, KilledBeforeTheFirstMessage) {
  auto outcomes = run_processes(kRanks, [](World world) {
    auto transport = connect(world);
    if (world.rank() == kVictim) {
      ::raise(SIGKILL);
    }
    wait_for_nothing(*transport, Deadline::after(30s));
  });
  EXPECT_EQ(outcomes[kVictim].signal, SIGKILL);
  expect_survivors_name_the_victim(outcomes, "PeerLost", 20);
}

TEST(TcpFaults, KilledInTheMiddle) {
  auto outcomes = run_processes(kRanks, [](World world) {
    auto transport = connect(world);
    for (std::uint64_t call = 0;; ++call) {
      if (world.rank() == kVictim && call == 7) {
        ::raise(SIGKILL);
      }
      ring(*transport, call, 1'000'000, Deadline::after(30s));
    }
  });
  EXPECT_EQ(outcomes[kVictim].signal, SIGKILL);
  expect_survivors_name_the_victim(outcomes, "PeerLost", 20);
}

TEST(TcpFaults, KilledFromOutsideAtAnyMoment) {
  // The moment is wherever the ranks happen to be; the law holds for all of them.
  for (int round = 0; round < 5; ++round) {
    test::RankProcesses processes(kRanks, test::with_world([](World world) {
                                    auto transport = connect(world);
                                    if (world.rank() == kVictim) {
                                      ring(*transport, 0, 10, Deadline::after(30s));
                                      ::raise(SIGSTOP);  // tells the test that all are connected
                                      for (std::uint64_t call = 1;; ++call) {
                                        ring(*transport, call, 200'000, Deadline::after(30s));
                                      }
                                    }
                                    for (std::uint64_t call = 0;; ++call) {
                                      ring(*transport, call, call == 0 ? 10 : 200'000,
                                           Deadline::after(30s));
                                    }
                                  }));
    ASSERT_TRUE(processes.wait_until_stopped(kVictim, Deadline::after(20s)));
    processes.send_signal(kVictim, SIGCONT);
    processes.send_signal(kVictim, SIGKILL);
    expect_survivors_name_the_victim(processes.wait(), "PeerLost", 20);
  }
}

TEST(TcpFaults, KilledAfterItsLastMessage) {
  auto outcomes = run_processes(kRanks, [](World world) {
    auto transport = connect(world);
    ring(*transport, 0, 100, Deadline::after(30s));
    if (world.rank() == kVictim) {
      ::raise(SIGKILL);
    }
    wait_for_nothing(*transport, Deadline::after(30s));
  });
  EXPECT_EQ(outcomes[kVictim].signal, SIGKILL);
  expect_survivors_name_the_victim(outcomes, "PeerLost", 20);
}

TEST(TcpFaults, KilledBeforeItIsConnected) {
  auto outcomes = run_processes(kRanks, [](World world) {
    if (world.rank() == kVictim) {
      // Its address is known, and nobody listens there any more: what the others see of a rank that
      // died while they connected.
      world.store().set("tcp/t/0/2", "127.0.0.1:1");
      ::raise(SIGKILL);
    }
    auto transport = connect(world);
  });
  expect_survivors_name_the_victim(outcomes, "PeerLost", 20);
}

TEST(TcpFaults, StoppedIsATimeoutThatNamesItOnEverySurvivor) {
  auto outcomes = run_processes(kRanks, [](World world) {
    auto transport = connect(world);
    for (std::uint64_t call = 0;; ++call) {
      if (world.rank() == kVictim && call == 3) {
        ::raise(SIGSTOP);
      }
      ring(*transport, call, 500'000, Deadline::after(call < 3 ? 30s : 2s));
    }
  });
  EXPECT_EQ(outcomes[kVictim].signal, SIGSTOP);
  expect_survivors_name_the_victim(outcomes, "Timeout", 20);
}

TEST(TcpFaults, AnErrorInOneRankEndsTheOthersByNamingIt) {
  auto outcomes = run_processes(kRanks, [](World world) {
    auto transport = connect(world);
    for (std::uint64_t call = 0;; ++call) {
      if (world.rank() == kVictim && call == 3) {
        throw ConfigError("the victim's own trouble");
      }
      ring(*transport, call, 1000, Deadline::after(30s));
    }
  });
  EXPECT_EQ(outcomes[kVictim].error, "ConfigError");
  expect_survivors_name_the_victim(outcomes, "PeerLost", 20);
}

}  // namespace
}  // namespace yoke::net
