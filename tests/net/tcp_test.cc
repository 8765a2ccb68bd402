// Messages over TCP between ranks that are threads: what arrives, and what is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <future>
#include <random>
#include <thread>

#include "tests/support/spawn_ranks.h"
#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/net/tcp/mesh.h"
#include "yoke/net/tcp/transport.h"
#include "yoke/net/wire.h"

namespace yoke::net {
namespace {

using namespace std::chrono_literals;
using test::run_threads;
using testing::AllOf;
using testing::HasSubstr;

Deadline soon() {
  return Deadline::after(20s);
}

std::unique_ptr<Transport> connect(const World& world, const std::string& name = "t") {
  return make_tcp_transport(world.place(), world.store(), name,
                            {.token = world.token(), .connect_timeout = 20s});
}

/// The bytes that `from` sends to `to` as message `index` of call `call`: both sides can compute
/// them.
std::vector<std::byte> content(std::size_t bytes, int from, int to, int index, int call) {
  std::mt19937 random(static_cast<unsigned>(from * 7919 + to * 104729 + index * 31 + call * 1009));
  std::vector<std::byte> out(bytes);
  for (std::size_t i = 0; i < bytes; i += 64) {
    out[i] = static_cast<std::byte>(random());
  }
  if (bytes > 0) {
    out.back() = static_cast<std::byte>(random());
  }
  return out;
}

/// The sizes of the messages from one rank to another, the same at both ends.
std::vector<std::size_t> sizes(int from, int to, int call) {
  std::mt19937 random(static_cast<unsigned>(from * 131 + to * 17 + call * 65537));
  std::vector<std::size_t> out(random() % 4);
  for (auto& size : out) {
    switch (random() % 5) {
      case 0:
        size = 0;
        break;
      case 1:
        size = random() % 64;
        break;
      case 2:
        size = random() % 100'000;
        break;
      case 3:  // around the ends of frames
        size = (1 + random() % 3) * kFramePayloadBytes + random() % 3 - 1;
        break;
      default:
        size = random() % 6'000'000;
        break;
    }
  }
  return out;
}

void exchange_everything(Transport& transport, int call) {
  int me = transport.rank();
  std::vector<std::vector<std::byte>> sent, received, expected;
  std::vector<int> to, from;
  for (int peer = 0; peer < transport.size(); ++peer) {
    if (peer == me) {
      continue;
    }
    auto out = sizes(me, peer, call);
    for (std::size_t i = 0; i < out.size(); ++i) {
      sent.push_back(content(out[i], me, peer, static_cast<int>(i), call));
      to.push_back(peer);
    }
    auto in = sizes(peer, me, call);
    for (std::size_t i = 0; i < in.size(); ++i) {
      expected.push_back(content(in[i], peer, me, static_cast<int>(i), call));
      received.emplace_back(in[i]);
      from.push_back(peer);
    }
  }
  std::vector<Outgoing> outgoing;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    outgoing.push_back({to[i], sent[i]});
  }
  std::vector<Incoming> incoming;
  for (std::size_t i = 0; i < received.size(); ++i) {
    incoming.push_back({from[i], received[i]});
  }
  auto before = transport.counters();
  CallTag tag;
  tag.sequence = static_cast<std::uint64_t>(call);
  transport.exchange(tag, outgoing, incoming, soon());
  EXPECT_EQ(received, expected) << "call " << call << " at rank " << me;

  std::uint64_t payload = 0, frames = 0;
  for (const auto& message : sent) {
    payload += message.size();
    frames += frames_of(message.size());
  }
  auto after = transport.counters();
  EXPECT_EQ(after.payload_bytes - before.payload_bytes, payload);
  EXPECT_EQ(after.wire_bytes - before.wire_bytes, payload + frames * kFrameHeaderBytes);
  EXPECT_EQ(after.messages - before.messages, sent.size());
}

class TcpExchange : public testing::TestWithParam<int> {};

TEST_P(TcpExchange, AnySizesBothWaysAtOnceArriveUnchanged) {
  run_threads(GetParam(), [](World world) {
    auto transport = connect(world);
    EXPECT_EQ(transport->rank(), world.rank());
    EXPECT_EQ(transport->size(), world.size());
    for (int call = 0; call < 12; ++call) {
      exchange_everything(*transport, call);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, TcpExchange, testing::Values(1, 2, 3, 5));

TEST(TcpTransport, AFastRankMayBeManyCallsAhead) {
  run_threads(2, [](World world) {
    auto transport = connect(world);
    std::vector<std::byte> bytes(1000);
    for (int call = 0; call < 50; ++call) {
      CallTag tag;
      tag.sequence = static_cast<std::uint64_t>(call);
      std::fill(bytes.begin(), bytes.end(), std::byte(call));
      if (world.rank() == 0) {
        transport->exchange(tag, std::vector<Outgoing>{{1, bytes}}, {}, soon());
      } else {
        std::vector<std::byte> got(bytes.size());
        transport->exchange(tag, {}, std::vector<Incoming>{{0, got}}, soon());
        EXPECT_EQ(got, bytes);
      }
    }
    // Rank 0 leaves at once, with all of it still on the way.
  });
}

TEST(TcpTransport, TwoCommunicatorsAtOnceDoNotMix) {
  run_threads(3, [](World world) {
    auto first = connect(world, "first");
    auto second = connect(world, "second");
    exchange_everything(*first, 1);
    exchange_everything(*second, 2);
    exchange_everything(*first, 3);
  });
}

/// What each rank of `size` threw, by its rank, as "type: message".
template <typename Body>
std::vector<std::string> errors_of(int size, Body body) {
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  run_threads(size, [&](World world) {
    auto& error = errors[static_cast<std::size_t>(world.rank())];
    try {
      body(world);
    } catch (const PeerLost& lost) {
      error = cat("PeerLost ", lost.rank(), ": ", lost.what());
    } catch (const CollectiveMismatch& mismatch) {
      error = cat("CollectiveMismatch ", mismatch.rank(), ": ", mismatch.what());
    } catch (const Aborted& aborted) {
      error = cat("Aborted: ", aborted.what());
    } catch (const Timeout& timeout) {
      error = "Timeout";
      for (int rank : timeout.missing()) {
        error += cat(" ", rank);
      }
      error += cat(": ", timeout.what());
    }
  });
  return errors;
}

/// Every rank to every other, a few bytes.
void all_to_all(Transport& transport, const CallTag& tag, std::size_t bytes = 8,
                Deadline deadline = soon()) {
  std::vector<std::vector<std::byte>> buffers(static_cast<std::size_t>(transport.size()),
                                              std::vector<std::byte>(bytes));
  std::vector<std::byte> mine(bytes);
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  for (int peer = 0; peer < transport.size(); ++peer) {
    if (peer != transport.rank()) {
      out.push_back({peer, mine});
      in.push_back({peer, buffers[static_cast<std::size_t>(peer)]});
    }
  }
  transport.exchange(tag, out, in, deadline);
}

TEST(TcpTransport, AnotherCallIsAMismatchThatNamesRankAndBothCalls) {
  auto errors = errors_of(2, [](World world) {
    auto transport = connect(world);
    CallTag tag;
    tag.count = world.rank() == 0 ? 25000 : 24000;
    tag.dtype = DType::kFloat32;
    tag.sequence = 7;
    all_to_all(*transport, tag);
  });
  // Who looks first names the other; the other one then hears of it, or looks itself.
  for (const auto& error : errors) {
    EXPECT_THAT(error, AllOf(HasSubstr("CollectiveMismatch"), HasSubstr("#7 of 25000 float32"),
                             HasSubstr("#7 of 24000 float32")));
  }
}

TEST(TcpTransport, AnotherSizeOfTheSameCallIsAMismatch) {
  auto errors = errors_of(2, [](World world) {
    auto transport = connect(world);
    all_to_all(*transport, {}, world.rank() == 0 ? 8 : 16);
  });
  for (const auto& error : errors) {
    EXPECT_THAT(error, AllOf(HasSubstr("CollectiveMismatch"), HasSubstr("8"), HasSubstr("16")));
  }
}

TEST(TcpTransport, AbortEndsAllWithinAHundredMilliseconds) {
  for (bool aborter_exchanges : {true, false}) {
    std::atomic<int> waiting{0};
    std::vector<double> ended(4);
    Clock::time_point called;
    auto errors = errors_of(4, [&](World world) {
      auto transport = connect(world);
      all_to_all(*transport, {});
      std::jthread aborter;
      if (world.rank() == 2) {
        aborter = std::jthread([&] {
          while (waiting < 3) {
            std::this_thread::yield();
          }
          called = Clock::now();
          transport->abort("the test says so");
        });
        if (!aborter_exchanges) {
          aborter.join();
        }
      } else {
        ++waiting;
      }
      std::byte byte{};
      int never = world.rank() == 2 ? 0 : 2;
      try {
        CallTag tag;
        tag.sequence = 1;
        transport->exchange(tag, {}, std::vector<Incoming>{{never, {&byte, 1}}}, soon());
      } catch (const Aborted&) {
        ended[static_cast<std::size_t>(world.rank())] = Seconds(Clock::now() - called).count();
        // Spent: the next call ends in the same way.
        EXPECT_THROW(transport->exchange({}, {}, {}, soon()), Aborted);
        throw;
      }
    });
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_THAT(errors[static_cast<std::size_t>(rank)],
                  AllOf(HasSubstr("Aborted"), HasSubstr("rank 2"), HasSubstr("the test says so")));
      EXPECT_LT(ended[static_cast<std::size_t>(rank)], 0.1) << "rank " << rank;
    }
  }
}

TEST(TcpTransport, AbortIsNotStuckBehindDataThatNobodyReads) {
  std::promise<void> sent;
  auto errors = errors_of(3, [&](World world) {
    auto transport = connect(world);
    std::vector<std::byte> bytes(20'000'000);
    if (world.rank() == 0) {
      // Fills the socket of rank 1, which waits for somebody else.
      std::jthread aborter([&] { sent.get_future().wait(), transport->abort("enough"); });
      transport->exchange({}, std::vector<Outgoing>{{1, bytes}}, {}, soon());
    } else if (world.rank() == 1) {
      sent.set_value();
      transport->exchange({}, {}, std::vector<Incoming>{{2, bytes}}, soon());
    } else {
      transport->exchange({}, {}, std::vector<Incoming>{{1, bytes}}, soon());
    }
  });
  for (const auto& error : errors) {
    EXPECT_THAT(error, AllOf(HasSubstr("Aborted"), HasSubstr("enough")));
  }
}

TEST(TcpTransport, ARankThatLeavesWhileItIsNeededIsNamedByAll) {
  auto errors = errors_of(3, [](World world) {
    auto transport = connect(world);
    all_to_all(*transport, {});
    if (world.rank() != 1) {
      CallTag tag;
      tag.sequence = 1;
      all_to_all(*transport, tag);
    }
  });
  EXPECT_EQ(errors[1], "");
  EXPECT_THAT(errors[0], HasSubstr("PeerLost 1: "));
  EXPECT_THAT(errors[2], HasSubstr("PeerLost 1: "));
}

TEST(TcpTransport, ARankThatLeavesWhenItIsDoneIsNoError) {
  auto errors = errors_of(3, [](World world) {
    auto transport = connect(world);
    all_to_all(*transport, {});
    if (world.rank() == 2) {
      return;
    }
    std::byte byte{};
    int other = 1 - world.rank();
    for (int i = 0; i < 100; ++i) {
      transport->exchange({}, std::vector<Outgoing>{{other, {&byte, 1}}}, {}, soon());
      transport->exchange({}, {}, std::vector<Incoming>{{other, {&byte, 1}}}, soon());
    }
  });
  for (const auto& error : errors) {
    EXPECT_EQ(error, "");
  }
}

TEST(TcpTransport, ATimeoutNamesTheRankThatDoesNotCall) {
  std::promise<void> done;
  auto finished = done.get_future().share();
  std::atomic<int> timed_out{0};
  auto errors = errors_of(3, [&](World world) {
    auto transport = connect(world);
    if (world.rank() == 1) {
      finished.wait();  // alive, connected, and not in a call
      return;
    }
    try {
      all_to_all(*transport, {}, 8, Deadline::after(200ms));
    } catch (const Timeout& error) {
      EXPECT_THAT(error.operation(), HasSubstr("all_reduce #0"));
      if (++timed_out == 2) {
        done.set_value();
      }
      throw;
    }
  });
  EXPECT_THAT(errors[0], HasSubstr("Timeout 1: "));
  EXPECT_THAT(errors[2], HasSubstr("Timeout 1: "));
}

TEST(TcpTransport, ATimeoutNamesTheEndOfTheChain) {
  // 0 waits for 1, 1 waits for 2, 2 does not call: both name 2, though 0 never waits for it.
  std::promise<void> done;
  auto finished = done.get_future().share();
  std::atomic<int> timed_out{0};
  auto errors = errors_of(3, [&](World world) {
    auto transport = connect(world);
    std::byte byte{};
    if (world.rank() == 2) {
      finished.wait();
      return;
    }
    // Rank 0's deadline is the shorter one, so that nobody tells it the answer.
    auto deadline = Deadline::after(world.rank() == 0 ? 200ms : 5s);
    try {
      transport->exchange({}, {}, std::vector<Incoming>{{world.rank() + 1, {&byte, 1}}}, deadline);
    } catch (const Timeout&) {
      if (++timed_out == 2) {
        done.set_value();
      }
      throw;
    }
  });
  EXPECT_THAT(errors[0], HasSubstr("Timeout 2: "));
  EXPECT_THAT(errors[1], HasSubstr("Timeout 2: "));
}

/// A rank 1 made of bare connections, that sends what it likes to rank 0.
template <typename Body>
std::vector<std::string> with_bare_peer(Body send, std::size_t bytes) {
  return errors_of(3, [&](World world) {
    if (world.rank() == 1) {
      auto mesh = connect_mesh(world.place(), world.store(), "t", {.token = world.token()});
      send(mesh.data[0].number(), mesh.control[0].number());
      // Stays until rank 0 has seen it and closed the connection.
      std::byte byte;
      while (wait_for(mesh.control[0].number(), 1 /* POLLIN */, soon()) &&
             ::recv(mesh.control[0].number(), &byte, 1, 0) > 0) {
      }
      return;
    }
    auto transport = connect(world);
    std::vector<std::byte> buffer(bytes);
    if (world.rank() == 0) {
      transport->exchange({}, {}, std::vector<Incoming>{{1, buffer}}, soon());
    } else {
      transport->exchange({}, {}, std::vector<Incoming>{{0, buffer}}, soon());
    }
  });
}

std::vector<std::byte> data_frame(std::span<const std::byte> payload) {
  FrameHeader header;
  header.message_bytes = payload.size();
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  header.payload_crc = crc32c(payload);
  auto encoded = encode(header);
  std::vector<std::byte> frame(encoded.size() + payload.size());
  std::copy(payload.begin(), payload.end(),
            std::copy(encoded.begin(), encoded.end(), frame.begin()));
  return frame;
}

TEST(TcpTransport, AFlippedBitAnywhereInAFrameNamesTheSender) {
  std::vector<std::byte> payload(100, std::byte{42});
  auto frame = data_frame(payload);
  for (std::size_t at :
       {std::size_t{0}, std::size_t{4}, std::size_t{16}, std::size_t{33}, std::size_t{60},
        std::size_t{65}, kFrameHeaderBytes, kFrameHeaderBytes + 99}) {
    auto damaged = frame;
    damaged[at] ^= std::byte{0x10};
    auto errors = with_bare_peer(
        [&](int data, int) { ::send(data, damaged.data(), damaged.size(), MSG_NOSIGNAL); },
        payload.size());
    EXPECT_THAT(errors[0], HasSubstr("PeerLost 1: ")) << "byte " << at;
    EXPECT_THAT(errors[2], HasSubstr("PeerLost 1: ")) << "byte " << at;
  }
  // The same frame undamaged is taken: the test's frames are right.
  auto errors = with_bare_peer(
      [&](int data, int control) {
        ::send(data, frame.data(), frame.size(), MSG_NOSIGNAL);
        auto goodbye = control_frame(FrameKind::kGoodbye, 0, {}, {});
        ::send(control, goodbye.data(), goodbye.size(), MSG_NOSIGNAL);
      },
      payload.size());
  EXPECT_EQ(errors[0], "");
}

TEST(TcpTransport, GarbageOnTheControlConnectionNamesTheSender) {
  std::string garbage(200, 'x');
  auto errors = with_bare_peer(
      [&](int, int control) { ::send(control, garbage.data(), garbage.size(), MSG_NOSIGNAL); }, 8);
  EXPECT_THAT(errors[0], HasSubstr("PeerLost 1: "));
  EXPECT_THAT(errors[2], HasSubstr("PeerLost 1: "));
}

}  // namespace
}  // namespace yoke::net
