// A member against a coordinator that the test plays, word by word.
#include "yoke/elastic/member.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <thread>

#include "yoke/elastic/coordinator.h"

namespace yoke::elastic {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Member, AChangeThatIsAskedForBeforeItHasEnteredIsNotForgotten) {
  auto listening = net::listen_on(net::resolve("127.0.0.1", 0, Deadline()));
  const auto address = net::own_address(listening.number());
  std::jthread coordinator([&](const std::stop_token& stop) {
    net::Descriptor socket;
    while (!socket) socket = net::accept_from(listening.number());
    auto greeting =
        net::Handshake::answer(std::move(socket), coordinator_identity("test"), "secret");
    while (greeting.advance() == net::Handshake::State::kRunning) {
      pollfd polled{greeting.descriptor(), greeting.events(), 0};
      ::poll(&polled, 1, 100);
    }
    MessageStream stream(greeting.take_socket());
    while (!stop.stop_requested() && stream.advance()) {
      while (const auto message = stream.next()) {
        if ((*message)["say"] != "ready") continue;
        // The member's thread may hear both before its training thread has woken up and entered the
        // generation; here it surely does.
        stream.push({{"say", "change"}, {"generation", 1}});
        stream.push({{"say", "view"},
                     {"generation", 1},
                     {"rank", 0},
                     {"size", 1},
                     {"store", ""},
                     {"changes", nlohmann::json::array()},
                     {"age_us", 0},
                     {"anyone_live", false},
                     {"reached", -1}});
      }
      pollfd polled{stream.descriptor(), stream.events(), 0};
      ::poll(&polled, 1, 5);
    }
  });
  Member member({.coordinator = address,
                 .job = "test",
                 .token = "secret",
                 .worker = 0,
                 .lease = seconds(100),
                 .beat = milliseconds(20)});
  const auto view = member.next({}, {});
  ASSERT_TRUE(view.has_value());
  // Whoever asked has asked once: who forgets it trains on for ever.
  for (const auto limit = Deadline::after(seconds(5)); !limit.passed() && !member.change_wanted();)
    std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(member.change_wanted());
}

}  // namespace
}  // namespace yoke::elastic
