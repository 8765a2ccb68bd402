// The store and its rendezvous: any order of arrival, strangers, and two jobs on one port.

#include "yoke/net/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "tests/support/spawn_ranks.h"
#include "yoke/base/error.h"
#include "yoke/net/handshake.h"
#include "yoke/net/rendezvous.h"
#include "yoke/net/socket.h"

namespace yoke::net {
namespace {

using namespace std::chrono_literals;
using test::Outcome;
using test::RankProcesses;
using testing::ElementsAre;
using testing::HasSubstr;

Deadline soon() {
  return Deadline::after(20s);
}

/// A port that is free now, and most likely for the test's length too.
std::uint16_t free_port() {
  return own_address(listen_on(resolve("127.0.0.1", 0, soon())).number()).port();
}

Place place_of(int rank, int size, std::uint16_t port, const std::string& job = "a job") {
  Place place{.rank = rank, .size = size, .local_rank = rank, .local_size = size};
  place.launcher = "yoke";
  place.master_port = port;
  place.job = job;
  return place;
}

/// Opens the stores of all ranks at once, in threads that start in the order given.
std::vector<std::shared_ptr<Store>> open_all(const std::vector<int>& order, std::uint16_t port,
                                             const std::string& job = "a job") {
  std::vector<std::shared_ptr<Store>> stores(order.size());
  std::vector<std::jthread> threads;
  for (int rank : order) {
    threads.emplace_back([&stores, rank, port, job, size = static_cast<int>(order.size())] {
      stores[static_cast<std::size_t>(rank)] =
          open_store(place_of(rank, size, port, job), {.token = "secret", .timeout = 20s});
    });
  }
  threads.clear();
  return stores;
}

/// Clients first, so that they leave before the server waits for them.
void close_all(std::vector<std::shared_ptr<Store>>& stores) {
  while (!stores.empty()) {
    stores.pop_back();
  }
}

TEST(Store, KeysAndCountersAreShared) {
  auto stores = open_all({0, 1, 2}, free_port());
  stores[1]->set("a", "from 1");
  EXPECT_EQ(stores[0]->get("a", soon()), "from 1");
  EXPECT_EQ(stores[2]->get("a", soon()), "from 1");
  stores[0]->set("a", "from 0");
  EXPECT_EQ(stores[2]->get("a", soon()), "from 0");
  EXPECT_EQ(stores[2]->add("n", 5), 5);
  EXPECT_EQ(stores[1]->add("n", -2), 3);
  EXPECT_EQ(stores[0]->add("n", 1), 4);
  std::string binary("\0\n\xff", 3);
  stores[1]->set(binary, binary);
  EXPECT_EQ(stores[2]->get(binary, soon()), binary);
  std::string large(1 << 20, 'x');
  stores[1]->set("large", large);
  EXPECT_EQ(stores[2]->get("large", soon()), large);
  close_all(stores);
}

TEST(Store, GetWaitsForTheKeyOfAnother) {
  auto stores = open_all({0, 1, 2}, free_port());
  // Also while another thread of the same rank waits for something else.
  std::jthread other([&] { EXPECT_EQ(stores[1]->get("second", soon()), "2"); });
  std::jthread waiting([&] {
    EXPECT_EQ(stores[1]->get("first", soon()), "1");
    stores[1]->set("second", "2");
  });
  stores[2]->set("first", "1");
  waiting.join();
  other.join();
  close_all(stores);
}

TEST(Store, GetGivesUpAtTheDeadlineAndNamesTheKey) {
  auto stores = open_all({0, 1}, free_port());
  for (auto& store : {stores[0], stores[1], make_memory_store()}) {
    try {
      store->get("nobody's", Deadline::after(20ms));
      FAIL() << "no error";
    } catch (const Timeout& error) {
      EXPECT_THAT(error.what(), HasSubstr("nobody's"));
    }
    // A deadline that has passed still finds what is there.
    store->set("there", "yes");
    EXPECT_EQ(store->get("there", Deadline()), "yes");
  }
  close_all(stores);
}

TEST(Rendezvous, ClientsMayComeFirst) {
  auto port = free_port();
  std::shared_ptr<Store> client;
  std::jthread first([&] { client = open_store(place_of(1, 2, port), {.timeout = 20s}); });
  // The server opens when the client has certainly tried: its connection is in this queue.
  {
    auto knocked = listen_on(resolve("127.0.0.1", port, soon()));
    ASSERT_TRUE(wait_for(knocked.number(), 1 /* POLLIN */, soon()));
  }
  auto server = open_store(place_of(0, 2, port), {.timeout = 20s});
  first.join();
  client->set("x", "1");
  EXPECT_EQ(server->get("x", soon()), "1");
  client.reset();
}

TEST(Rendezvous, TwoJobsOnOnePortNeverMeet) {
  auto port = free_port();
  std::vector<std::shared_ptr<Store>> red, blue;
  std::jthread one([&] { red = open_all({1, 0, 2}, port, "red"); });
  std::jthread two([&] { blue = open_all({2, 1, 0}, port, "blue"); });
  one.join();
  two.join();
  red[1]->set("colour", "red");
  blue[1]->set("colour", "blue");
  EXPECT_EQ(red[2]->get("colour", soon()), "red");
  EXPECT_EQ(blue[2]->get("colour", soon()), "blue");
  close_all(red);
  close_all(blue);
}

TEST(Rendezvous, WithoutRankZeroTheAddressIsNamed) {
  auto port = free_port();
  try {
    open_store(place_of(1, 2, port), {.timeout = 100ms});
    FAIL() << "no error";
  } catch (const Timeout& error) {
    EXPECT_THAT(error.what(), HasSubstr(cat("127.0.0.1:", port)));
    EXPECT_THAT(error.missing(), ElementsAre(0));
  }
}

TEST(Rendezvous, MissingRanksAreNamedByAllOthers) {
  auto port = free_port();
  std::vector<std::jthread> threads;
  for (int rank : {0, 2}) {
    threads.emplace_back([=] {
      try {
        open_store(place_of(rank, 4, port), {.timeout = 700ms});
        ADD_FAILURE() << "no error at rank " << rank;
      } catch (const Timeout& error) {
        EXPECT_THAT(error.missing(), ElementsAre(1, 3)) << "at rank " << rank;
      }
    });
  }
}

TEST(Rendezvous, AWrongTokenIsRefusedOnBothSides) {
  auto port = free_port();
  std::jthread right([=] {
    EXPECT_THROW(open_store(place_of(0, 2, port), {.token = "right", .timeout = 700ms}), Timeout);
  });
  try {
    open_store(place_of(1, 2, port), {.token = "wrong", .timeout = 500ms});
    FAIL() << "no error";
  } catch (const Timeout& error) {
    EXPECT_THAT(error.what(), HasSubstr("token"));
  }
}

TEST(Rendezvous, AnOldGenerationIsRefusedForGood) {
  auto port = free_port();
  auto now = place_of(0, 2, port);
  now.generation = 3;
  std::jthread server([=] { EXPECT_THROW(open_store(now, {.timeout = 700ms}), Timeout); });
  auto old = place_of(1, 2, port);
  old.generation = 2;
  try {
    open_store(old, {.timeout = 20s});
    FAIL() << "no error";
  } catch (const JoinRefused& error) {
    EXPECT_THAT(error.what(), HasSubstr("generation 3"));
  }
}

TEST(Rendezvous, AnotherWorldSizeIsRefusedForGood) {
  auto port = free_port();
  std::jthread server(
      [=] { EXPECT_THROW(open_store(place_of(0, 2, port), {.timeout = 700ms}), Timeout); });
  EXPECT_THROW(open_store(place_of(1, 3, port), {.timeout = 20s}), JoinRefused);
}

/// Connects to every port that the job may use and says what it is told to, or nothing.
std::vector<Descriptor> pester(std::uint16_t port, const std::string& words, int times) {
  std::vector<Descriptor> open;
  for (int i = 0; i < times; ++i) {
    for (int offset = 0; offset <= 3; ++offset) {
      auto address = resolve("127.0.0.1", static_cast<std::uint16_t>(port + offset), soon());
      open.push_back(start_connecting(address));
      if (!words.empty() && wait_for(open.back().number(), 4 /* POLLOUT */, soon())) {
        ::send(open.back().number(), words.data(), words.size(), MSG_NOSIGNAL);
      }
    }
  }
  return open;
}

TEST(Rendezvous, StrangersDoNotKeepTheOthersOut) {
  auto port = free_port();
  std::shared_ptr<Store> server, client;
  std::jthread opening([&] { server = open_store(place_of(0, 2, port), {.timeout = 20s}); });
  auto silent = pester(port, "", 60);
  auto talking = pester(port, std::string(500, 'G'), 20);
  auto short_ones = pester(port, "GET", 20);
  client = open_store(place_of(1, 2, port), {.timeout = 20s});
  opening.join();
  auto more = pester(port, "", 60);
  client->set("x", "1");
  EXPECT_EQ(server->get("x", soon()), "1");
  client.reset();
}

TEST(Rendezvous, ARankThatIsThereAlreadyIsRefused) {
  auto port = free_port();
  auto stores = open_all({0, 1}, port);
  try {
    open_store(place_of(1, 2, port), {.token = "secret", .timeout = 20s});
    ADD_FAILURE() << "two processes are rank 1";
  } catch (const JoinRefused& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1 of job 'a job' is there already"));
  }
  close_all(stores);
}

TEST(Store, ADeadServerIsPeerLost) {
  auto outcomes = test::run_processes(3, [](World world) {
    if (world.rank() == 0) {
      world.store().get("both are here", soon());
      ::raise(SIGKILL);
    }
    if (world.store().add("n", 1) == 2) {
      world.store().set("both are here", "");
    }
    world.store().get("never", soon());
  });
  EXPECT_EQ(outcomes[0].signal, SIGKILL);
  for (int rank : {1, 2}) {
    const auto& outcome = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.error, "PeerLost") << outcome;
    EXPECT_THAT(outcome.ranks, ElementsAre(0));
    EXPECT_LT(outcome.seconds, 5);
  }
}

TEST(Store, TheServerStaysUntilTheOthersHaveLeft) {
  auto outcomes = test::run_processes(3, [](World world) -> std::string {
    if (world.rank() == 0) {
      return "left at once";
    }
    // Needs the server after rank 0 has returned.
    for (int i = 0; i < 50; ++i) {
      world.store().add("n", 1);
    }
    return "done";
  });
  for (const auto& outcome : outcomes) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
  }
}

}  // namespace
}  // namespace yoke::net
