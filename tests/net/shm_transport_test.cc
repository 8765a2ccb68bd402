#include "yoke/net/shm/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "tests/support/spawn_ranks.h"
#include "yoke/base/error.h"
#include "yoke/net/shm/mailbox.h"

namespace yoke::net {
namespace {

constexpr auto kLong = std::chrono::seconds(20);

std::unique_ptr<Transport> connect(const World& world, std::shared_ptr<ShmGroup>* group = nullptr) {
  const auto deadline = Deadline::after(kLong);
  auto joined = ShmGroup::join(world.place(), world.shared_memory(), "test", deadline);
  if (group != nullptr) *group = joined;
  return make_shm_transport(std::move(joined), world.shared_memory(), deadline);
}

std::vector<std::byte> pattern(std::size_t bytes, int seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<std::byte>(i * 7 + seed * 31 + i / 251);
  return data;
}

TEST(Mailbox, BytesComeOutInTheOrderTheyWentIn) {
  auto box = std::make_unique<Mailbox>();
  const auto sent = pattern(500'000, 1);
  std::vector<std::byte> got(sent.size());
  std::jthread writer([&] {
    for (std::size_t at = 0; at < sent.size();) {
      at += box->write(std::span(sent).subspan(at, std::min<std::size_t>(977, sent.size() - at)));
    }
  });
  for (std::size_t at = 0; at < got.size();) {
    at += box->read(std::span(got).subspan(at, std::min<std::size_t>(1301, got.size() - at)));
  }
  EXPECT_EQ(got, sent);
  EXPECT_EQ(box->available(), 0u);
  EXPECT_EQ(box->room(), Mailbox::kBytes);
}

TEST(Mailbox, TakesWhatFitsAndNoMore) {
  auto box = std::make_unique<Mailbox>();
  const auto data = pattern(Mailbox::kBytes + 10, 2);
  EXPECT_EQ(box->write(data), Mailbox::kBytes);
  EXPECT_EQ(box->write(data), 0u);
  std::vector<std::byte> some(100);
  EXPECT_EQ(box->read(some), 100u);
  EXPECT_EQ(box->room(), 100u);
}

TEST(ShmTransport, MovesMessagesOfEverySizeBothWaysAtOnce) {
  const int ranks = 4;
  test::run_threads(ranks, [&](World world) {
    const auto transport = connect(world);
    EXPECT_EQ(transport->name(), "shm");
    for (const std::size_t bytes : {0, 1, 1000, 65'536, 300'000}) {
      const CallTag tag{.sequence = bytes};
      std::vector<std::vector<std::byte>> sent, got;
      std::vector<Outgoing> out;
      std::vector<Incoming> in;
      sent.reserve(2 * ranks);
      got.reserve(2 * ranks);
      for (int peer = 0; peer < ranks; ++peer) {
        // Two to each peer: they stay in order.
        for (int copy = 0; peer != world.rank() && copy < 2; ++copy) {
          out.push_back({peer, sent.emplace_back(pattern(bytes + copy, world.rank() * 2 + copy))});
          in.push_back({peer, got.emplace_back(bytes + copy)});
        }
      }
      transport->exchange(tag, out, in, Deadline::after(kLong));
      std::size_t next = 0;
      for (int peer = 0; peer < ranks; ++peer) {
        for (int copy = 0; peer != world.rank() && copy < 2; ++copy) {
          ASSERT_EQ(got[next++], pattern(bytes + copy, peer * 2 + copy));
        }
      }
    }
    // 5 sizes, each once as it is and once a byte longer, to 3 peers.
    const std::uint64_t payload = 3 * (2 * (0 + 1 + 1000 + 65'536 + 300'000) + 5);
    EXPECT_EQ(transport->counters().messages, 30u);
    EXPECT_EQ(transport->counters().payload_bytes, payload);
    EXPECT_EQ(transport->counters().wire_bytes, payload + 30 * kShmFrameBytes);
  });
}

TEST(ShmTransport, AnotherTagOrSizeIsAMismatchBeforeThePayloadMoves) {
  for (const bool other_size : {false, true}) {
    test::run_threads(2, [&](World world) {
      const auto transport = connect(world);
      std::vector<std::byte> data(100, std::byte{1});
      if (world.rank() == 0) {
        const Outgoing out{1, std::span(data).first(other_size ? 50 : 100)};
        transport->exchange({.sequence = other_size ? 1u : 2u}, {&out, 1}, {},
                            Deadline::after(kLong));
        return;
      }
      const Incoming in{0, data};
      try {
        transport->exchange({.sequence = 1}, {}, {&in, 1}, Deadline::after(kLong));
        FAIL();
      } catch (const CollectiveMismatch& error) {
        EXPECT_EQ(error.rank(), 0);
      }
      EXPECT_THAT(data, testing::Each(std::byte{1}));
    });
  }
}

TEST(ShmTransport, AbortReachesASleeper) {
  test::run_threads(2, [&](World world) {
    const auto transport = connect(world);
    if (world.rank() == 0) return transport->abort("enough");
    std::byte byte;
    const Incoming in{0, {&byte, 1}};
    EXPECT_THROW(transport->exchange({}, {}, {&in, 1}, Deadline::after(kLong)), Aborted);
    EXPECT_THROW(transport->exchange({}, {}, {&in, 1}, Deadline::after(kLong)), Aborted);
  });
}

TEST(ShmTransport, AMessageOfARankThatHasLeftStillArrives) {
  test::run_threads(2, [&](World world) {
    auto transport = connect(world);
    const auto data = pattern(1000, 3);
    if (world.rank() == 0) {
      const Outgoing out{1, data};
      transport->exchange({}, {&out, 1}, {}, Deadline::after(kLong));
      return;
    }
    std::vector<std::byte> got(1000);
    const Incoming in{0, got};
    transport->exchange({}, {}, {&in, 1}, Deadline::after(kLong));
    EXPECT_EQ(got, data);
    // Nothing more will come.
    try {
      transport->exchange({}, {}, {&in, 1}, Deadline::after(kLong));
      FAIL();
    } catch (const PeerLost& error) {
      EXPECT_EQ(error.rank(), 0);
    }
  });
}

TEST(ShmGroup, TheFirstFailureIsEverybodys) {
  test::run_threads(3, [&](World world) {
    std::shared_ptr<ShmGroup> group;
    const auto transport = connect(world, &group);
    if (world.rank() == 2) {
      group->fail({.kind = Failure::Kind::kTimeout,
                   .missing = {0, 1},
                   .operation = "something",
                   .message = "it took too long"});
      const Failure second = group->fail({.kind = Failure::Kind::kAborted, .message = "later"});
      EXPECT_EQ(second.message, "it took too long");
      return;
    }
    std::byte byte;
    const Incoming in{1 - world.rank(), {&byte, 1}};
    try {
      transport->exchange({}, {}, {&in, 1}, Deadline::after(kLong));
      FAIL();
    } catch (const Timeout& error) {
      EXPECT_EQ(error.missing(), (std::vector<int>{0, 1}));
      EXPECT_EQ(error.operation(), "something");
      EXPECT_STREQ(error.what(), "it took too long");
    }
  });
}

TEST(ShmGroup, AProcessThatDiesWhileOthersSleepIsNamed) {
  const auto outcomes = test::run_processes(3, [](World world) {
    const auto transport = connect(world);
    if (world.rank() == 1) raise(SIGKILL);
    // 0 waits for 2, which waits for 1.
    std::byte byte;
    const Incoming in{world.rank() == 0 ? 2 : 1, {&byte, 1}};
    transport->exchange({}, {}, {&in, 1}, Deadline::after(kLong));
  });
  for (const int rank : {0, 2}) {
    EXPECT_EQ(outcomes[rank].error, "PeerLost") << outcomes[rank];
    EXPECT_EQ(outcomes[rank].ranks, std::vector<int>{1});
    EXPECT_LT(outcomes[rank].seconds, 10);
  }
}

TEST(WaitPolicy, SpinsLongOnlyWhereEveryRankHasACore) {
  EXPECT_EQ(WaitPolicy::of(2, 2).pauses, 4000);
  EXPECT_EQ(WaitPolicy::of(2, 2).yields, 0);
  EXPECT_EQ(WaitPolicy::of(3, 2).pauses, 20);
  EXPECT_EQ(WaitPolicy::of(3, 2).yields, 2000);
  EXPECT_GE(usable_cores(), 1);
}

TEST(Failure, IsThrownAsWhatItWas) {
  const std::vector<Failure> all = {
      {.kind = Failure::Kind::kAborted, .generation = 3, .message = "a"},
      {.kind = Failure::Kind::kPeerLost, .rank = 2, .message = "b"},
      {.kind = Failure::Kind::kTimeout, .missing = {1, 4}, .operation = "o", .message = "c"},
      {.kind = Failure::Kind::kMismatch, .rank = 5, .message = "d"},
      {.kind = Failure::Kind::kOther, .message = "e"}};
  for (const Failure& failure : all) {
    try {
      failure.raise();
    } catch (const std::exception& error) {
      const Failure again = Failure::of(error);
      EXPECT_EQ(again.kind, failure.kind);
      EXPECT_EQ(again.rank, failure.rank);
      EXPECT_EQ(again.generation, failure.generation);
      EXPECT_EQ(again.missing, failure.missing);
      EXPECT_EQ(again.operation, failure.operation);
      EXPECT_EQ(again.message, failure.message);
    }
  }
}

}  // namespace
}  // namespace yoke::net
