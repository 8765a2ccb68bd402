// Ranks on two hosts, which are network namespaces: what the kernel's TCP tells of a cut is an
// error within TCP_USER_TIMEOUT, long before the deadline of the call.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "tests/comm/sample.h"
#include "tests/support/network_namespaces.h"
#include "tests/support/spawn_ranks.h"
#include "yoke/base/error.h"
#include "yoke/comm/communicator.h"

namespace yoke::comm {
namespace {

using namespace std::chrono_literals;
using test::NetworkNamespaces;

constexpr auto kUserTimeout = 2s;
constexpr auto kCallTimeout = 30s;
constexpr std::size_t kElements = 200'000;

class Hosts : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = NetworkNamespaces::why_not(); !why.empty()) GTEST_SKIP() << why;
    ASSERT_EQ(::pipe2(said_, O_CLOEXEC), 0);
  }
  void TearDown() override {
    for (const int end : said_) ::close(end);
  }

  /// Rank r on host r: sums until there were `calls` of them or an error comes. Says a word after
  /// the first.
  test::RankProcesses start(const NetworkNamespaces& network, int calls) const {
    return test::RankProcesses(
        2, [&network, calls, this](Place place, net::RendezvousOptions options) -> std::string {
          network.enter(place.rank);
          place.master_address = NetworkNamespaces::address(0);
          place.master_port = 29500;
          place.local_rank = 0;
          place.local_size = 1;
          options.listening_descriptor = -1;
          const auto world = World::at(place, options);
          auto communicator = Communicator::create(world, {.transport = TransportKind::kTcp,
                                                           .timeout = kCallTimeout,
                                                           .user_timeout = kUserTimeout});
          std::vector<float> data(kElements);
          for (int call = 0; call < calls; ++call) {
            for (std::size_t i = 0; i < data.size(); ++i) {
              data[i] = test::element<float>(place.rank, i, call);
            }
            communicator->all_reduce(std::as_writable_bytes(std::span(data)), DType::kFloat32,
                                     ReduceOp::kSum);
            for (std::size_t i = 0; i < data.size(); ++i) {
              const auto sum = test::element<float>(0, i, call) + test::element<float>(1, i, call);
              if (data[i] != sum) return "a wrong sum";
            }
            if (call == 0 && ::write(said_[1], "", 1) != 1) return "no pipe";
          }
          return "right";
        });
  }

  /// Both have summed once.
  void wait_for_both() const {
    char words[2];
    ASSERT_TRUE(net::wait_for(said_[0], 1 /* POLLIN */, Deadline::after(20s)));
    for (char& word : words) ASSERT_EQ(::read(said_[0], &word, 1), 1);
  }

  static void expect_errors_within_the_user_timeout(test::RankProcesses& ranks) {
    const auto start = Clock::now();
    for (const auto& outcome : ranks.wait()) {
      EXPECT_TRUE(outcome.error == "PeerLost" || outcome.error == "Timeout") << outcome;
    }
    EXPECT_LT(Clock::now() - start, kUserTimeout + 5s);
  }

  int said_[2] = {-1, -1};
};

constexpr int kForEver = 1 << 30;

TEST_F(Hosts, SumsAreRightFromHostToHost) {
  const NetworkNamespaces network(2);
  for (const auto& outcome : start(network, 5).wait()) EXPECT_EQ(outcome.text, "right") << outcome;
}

TEST_F(Hosts, SumsAreRightOverASlowWire) {
  const NetworkNamespaces network(2);
  network.shape(0, 4'000'000);
  const auto outcomes = start(network, 3).wait();
  for (const auto& outcome : outcomes) {
    EXPECT_EQ(outcome.text, "right") << outcome;
    // 800 kB a call go from host 0 to host 1.
    EXPECT_GT(outcome.seconds, 3 * 0.2 * 0.8);
  }
}

TEST_F(Hosts, ACutOfOneDirectionIsAnErrorWithinTheUserTimeout) {
  for (const int from : {0, 1}) {
    const NetworkNamespaces network(2);
    auto ranks = start(network, kForEver);
    wait_for_both();
    network.cut(from, 1 - from);
    expect_errors_within_the_user_timeout(ranks);
  }
}

TEST_F(Hosts, APulledCableIsAnErrorWithinTheUserTimeout) {
  const NetworkNamespaces network(2);
  auto ranks = start(network, kForEver);
  wait_for_both();
  network.unplug(1);
  expect_errors_within_the_user_timeout(ranks);
}

TEST_F(Hosts, ACutThatIsHealedInTimeIsNotNoticed) {
  const NetworkNamespaces network(2);
  auto ranks = start(network, 200);
  wait_for_both();
  network.cut(0, 1);
  std::this_thread::sleep_for(200ms);
  network.heal(0, 1);
  for (const auto& outcome : ranks.wait()) EXPECT_EQ(outcome.text, "right") << outcome;
}

TEST_F(Hosts, NamespacesLeaveNothing) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  const auto interfaces = [] {
    return std::distance(std::filesystem::directory_iterator("/sys/class/net"),
                         std::filesystem::directory_iterator());
  };
  const auto before = descriptors();
  const auto visible = interfaces();
  {
    const NetworkNamespaces network(3);
    EXPECT_EQ(network.run(1, {"ip", "-brief", "-4", "address", "show", "eth0"}).text.find("eth0"),
              0u);
    EXPECT_EQ(interfaces(), visible);
  }
  EXPECT_EQ(descriptors(), before);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // no child is left
}

}  // namespace
}  // namespace yoke::comm
