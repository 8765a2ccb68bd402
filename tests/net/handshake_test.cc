// Who gets in: the right token, once, for the right job, purpose, generation and size.

#include "yoke/net/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

#include "tests/support/spawn_ranks.h"
#include "yoke/base/error.h"
#include "yoke/net/tcp/mesh.h"
#include "yoke/net/tcp/transport.h"

namespace yoke::net {
namespace {

using namespace std::chrono_literals;
using State = Handshake::State;
using testing::HasSubstr;

std::pair<Descriptor, Descriptor> socket_pair() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Identity rank(int rank, const std::string& purpose = "store", std::uint64_t generation = 4) {
  return {.job = "a job", .purpose = purpose, .generation = generation, .rank = rank, .size = 3};
}

/// Both sides in one thread, until neither gets any further.
std::pair<Handshake, Handshake> greet(const Identity& caller, const std::string& callers_token,
                                      const Identity& acceptor,
                                      const std::string& acceptors_token) {
  auto [one, other] = socket_pair();
  auto call = Handshake::call(std::move(one), caller, callers_token, 1);
  auto answer = Handshake::answer(std::move(other), acceptor, acceptors_token);
  for (int i = 0; i < 10; ++i) {
    call.advance();
    answer.advance();
  }
  return {std::move(call), std::move(answer)};
}

TEST(Handshake, TheRightOnesMeet) {
  auto [call, answer] = greet(rank(2), "secret", rank(0), "secret");
  ASSERT_EQ(call.state(), State::kAccepted) << call.why();
  ASSERT_EQ(answer.state(), State::kAccepted) << answer.why();
  EXPECT_EQ(call.peer(), 0);
  EXPECT_EQ(answer.peer(), 2);
  EXPECT_EQ(answer.channel(), 1);
}

TEST(Handshake, AnythingElseIsRefusedByBothAndTheVerdictSaysWhy) {
  auto other_job = rank(1);
  other_job.job = "another job";
  auto other_size = rank(1);
  other_size.size = 4;
  struct Case {
    Identity caller;
    std::string token;
    Verdict verdict;
  };
  for (const auto& [caller, token, verdict] :
       {Case{other_job, "secret", Verdict::kElsewhere},
        Case{rank(1, "tcp/x"), "secret", Verdict::kElsewhere},
        Case{rank(1, "store", 3), "secret", Verdict::kLowerGeneration},
        Case{rank(1, "store", 5), "secret", Verdict::kHigherGeneration},
        Case{other_size, "secret", Verdict::kWrongWorld},
        Case{rank(3), "secret", Verdict::kWrongWorld},
        Case{rank(-1), "secret", Verdict::kWrongWorld}}) {
    auto [call, answer] = greet(caller, token, rank(0), "secret");
    EXPECT_EQ(call.state(), State::kRefused);
    EXPECT_EQ(answer.state(), State::kRefused);
    EXPECT_EQ(call.verdict(), verdict) << call.why();
    EXPECT_EQ(answer.verdict(), verdict) << answer.why();
  }
}

TEST(Handshake, AWrongTokenIsRefusedByBoth) {
  auto [call, answer] = greet(rank(1), "wrong", rank(0), "secret");
  EXPECT_EQ(call.state(), State::kRefused);
  EXPECT_EQ(call.verdict(), Verdict::kWrongToken);
  EXPECT_NE(answer.state(), State::kAccepted);
}

/// The bytes that one side has sent.
GreetingBytes take(const Descriptor& socket) {
  GreetingBytes bytes{};
  EXPECT_EQ(::recv(socket.number(), bytes.data(), bytes.size(), 0),
            static_cast<ssize_t>(bytes.size()));
  return bytes;
}

void give(const Descriptor& socket, const GreetingBytes& bytes) {
  EXPECT_EQ(::send(socket.number(), bytes.data(), bytes.size(), 0),
            static_cast<ssize_t>(bytes.size()));
}

TEST(Handshake, ARecordedConversationOpensNothing) {
  // A man in the middle passes on, and records, everything that a real caller says.
  auto [caller_end, to_caller] = socket_pair();
  auto [acceptor_end, to_acceptor] = socket_pair();
  auto call = Handshake::call(std::move(caller_end), rank(1), "secret");
  auto answer = Handshake::answer(std::move(acceptor_end), rank(0), "secret");
  call.advance();
  auto hello = take(to_caller);
  give(to_acceptor, hello);
  answer.advance();
  give(to_caller, take(to_acceptor));
  call.advance();
  auto proof = take(to_caller);
  give(to_acceptor, proof);
  ASSERT_EQ(answer.advance(), State::kAccepted);

  // Said again to the same acceptor, the same words are worth nothing: its nonce is another.
  auto [second_end, to_second] = socket_pair();
  auto second = Handshake::answer(std::move(second_end), rank(0), "secret");
  give(to_second, hello);
  second.advance();
  take(to_second);
  give(to_second, proof);
  EXPECT_EQ(second.advance(), State::kRefused);
  EXPECT_EQ(second.verdict(), Verdict::kWrongToken);
  EXPECT_THAT(second.why(), HasSubstr("replays"));
}

TEST(Handshake, AnAcceptorThatReflectsOrReplaysIsNotBelieved) {
  auto [caller_end, to_caller] = socket_pair();
  auto call = Handshake::call(std::move(caller_end), rank(1), "secret");
  call.advance();
  auto hello = decode_greeting(take(to_caller));
  ASSERT_TRUE(hello);
  hello->kind = GreetingKind::kAnswer;
  hello->rank = 0;
  give(to_caller, encode(*hello));
  EXPECT_EQ(call.advance(), State::kRefused);
  EXPECT_EQ(call.verdict(), Verdict::kWrongToken);
}

TEST(Handshake, GarbageIsRefusedAndSilenceGoesOn) {
  auto [one, other] = socket_pair();
  auto answer = Handshake::answer(std::move(other), rank(0), "secret");
  EXPECT_EQ(answer.advance(), State::kRunning);
  GreetingBytes garbage{};
  give(one, garbage);
  EXPECT_EQ(answer.advance(), State::kRefused);
  EXPECT_THAT(answer.why(), HasSubstr("protocol"));
}

TEST(Mesh, StrangersOfAllKindsDoNotKeepTheRanksApart) {
  test::run_threads(4, [](World world) {
    // Rank 3 is late: until then strangers have rank 0 for themselves.
    std::vector<Descriptor> strangers;
    if (world.rank() == 3) {
      auto soon = Deadline::after(20s);
      auto address = resolve(world.store().get("tcp/t/0/0", soon), soon);
      auto impostor_of = [&](const Identity& self, const std::string& token) {
        auto call = Handshake::call(start_connecting(address), self, token);
        while (call.advance() == State::kRunning) {
          ASSERT_TRUE(wait_for(call.descriptor(), call.events(), soon));
        }
        EXPECT_EQ(call.state(), State::kRefused);
      };
      Identity self{.job = "threads", .purpose = "tcp/t", .generation = 0, .rank = 3, .size = 4};
      for (int i = 0; i < 30; ++i) {
        strangers.push_back(start_connecting(address));  // silent
        impostor_of(self, "wrong");
      }
      auto old = self;
      old.purpose = "tcp/other";
      impostor_of(old, world.token());
      old = self;
      old.rank = 0;  // a rank that does not call this one
      old.size = 5;
      impostor_of(old, world.token());
    }
    auto transport = make_tcp_transport(world.place(), world.store(), "t",
                                        {.token = world.token(), .connect_timeout = 20s});
    EXPECT_EQ(transport->rank(), world.rank());
  });
}

TEST(Mesh, AMissingRankIsNamedByTheOthers) {
  std::atomic<int> named{0};
  test::run_threads(4, [&](World world) {
    if (world.rank() == 2) {
      return;
    }
    try {
      connect_mesh(world.place(), world.store(), "t",
                   {.token = world.token(), .connect_timeout = 300ms});
      ADD_FAILURE() << "no error at rank " << world.rank();
    } catch (const Timeout& error) {
      EXPECT_THAT(error.missing(), testing::Contains(2))
          << "at rank " << world.rank() << ": " << error.what();
      ++named;
    }
  });
  EXPECT_EQ(named, 3);
}

}  // namespace
}  // namespace yoke::net
