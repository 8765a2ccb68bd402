// All-reduce over TCP between two ranks through a proxy that does what a bad network does: the
// right sum or a typed error, in bounded time, and never a wrong sum.

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "tests/comm/sample.h"
#include "tests/support/fault_proxy.h"
#include "tests/support/spawn_ranks.h"
#include "yoke/base/error.h"
#include "yoke/comm/group_communicator.h"
#include "yoke/comm/message_backend.h"
#include "yoke/net/tcp/transport.h"

namespace yoke::comm {
namespace {

using namespace std::chrono_literals;
using test::Direction;
using test::FaultProxy;
using test::PathFaults;

constexpr auto kThere = Direction::kThere;
constexpr auto kBack = Direction::kBack;

/// Publishes the address of a proxy in place of the rank's own: whoever looks the rank up meets the
/// proxy.
class DetouredStore final : public net::Store {
 public:
  DetouredStore(net::Store& store, std::uint64_t seed) : store_(store), seed_(seed) {}

  void set(const std::string& key, const std::string& value) override {
    if (key.starts_with("tcp/")) {
      proxy_.emplace(value, seed_);
      return store_.set(key, proxy_->address());
    }
    store_.set(key, value);
  }
  std::string get(const std::string& key, Deadline deadline) override {
    return store_.get(key, deadline);
  }
  std::int64_t add(const std::string& key, std::int64_t amount) override {
    return store_.add(key, amount);
  }
  FaultProxy& proxy() { return *proxy_; }

 private:
  net::Store& store_;
  const std::uint64_t seed_;
  std::optional<FaultProxy> proxy_;
};

struct Limits {
  Clock::duration timeout = 20s;
  Clock::duration user_timeout = 20s;
};

/// How one rank came out of it.
struct Outcome {
  int right = 0, wrong = 0;  ///< sums
  std::string error;         ///< "PeerLost", "Timeout", "another" and its text; empty: none
  double seconds = 0;        ///< that the call with the error took
};

constexpr std::size_t kElements = 100'000;

bool is_right(std::span<const float> sum, std::uint64_t call) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    if (sum[i] != test::element<float>(0, i, call) + test::element<float>(1, i, call)) return false;
  }
  return true;
}

/// Two ranks make `calls` all-reduces; rank 1 reaches rank 0 through the proxy. Before call 1 rank
/// 0 lets `trouble` loose, so that connecting and one sum are out of the way.
std::vector<Outcome> all_reduces(
    int calls, const Limits& limits, const std::function<void(FaultProxy&)>& trouble,
    std::uint64_t seed = 1, const std::function<void()>& before_the_end = [] {}) {
  std::vector<Outcome> outcomes(2);
  std::atomic<int> ended{0};
  test::run_threads(2, [&](World world) {
    auto& outcome = outcomes[static_cast<std::size_t>(world.rank())];
    DetouredStore detour(world.store(), seed);
    net::Store& store = world.rank() == 0 ? detour : world.store();
    auto transport = net::make_tcp_transport(
        world.place(), store, "t",
        {.token = world.token(), .connect_timeout = 20s, .user_timeout = limits.user_timeout});
    std::unique_ptr<Communicator> communicator = std::make_unique<GroupCommunicator>(
        world, CommunicatorOptions{.timeout = limits.timeout}, TransportKind::kTcp,
        std::make_unique<MessageBackend>(std::move(transport)));
    communicator->barrier();
    std::vector<float> data(kElements);
    auto start = Clock::now();
    try {
      for (int call = 0; call < calls; ++call) {
        if (call == 1 && world.rank() == 0) trouble(detour.proxy());
        for (std::size_t i = 0; i < data.size(); ++i) {
          data[i] = test::element<float>(world.rank(), i, call);
        }
        start = Clock::now();
        communicator->all_reduce(std::as_writable_bytes(std::span(data)), DType::kFloat32,
                                 ReduceOp::kSum);
        ++(is_right(data, call) ? outcome.right : outcome.wrong);
      }
    } catch (const PeerLost&) {
      outcome.error = "PeerLost";
    } catch (const Timeout&) {
      outcome.error = "Timeout";
    } catch (const std::exception& error) {
      outcome.error = cat("another: ", error.what());
    }
    outcome.seconds = Seconds(Clock::now() - start).count();
    // The proxy stays until both are through.
    communicator.reset();
    ++ended;
    if (world.rank() == 0) {
      while (ended < 2) std::this_thread::sleep_for(1ms);
      before_the_end();
    }
  });
  return outcomes;
}

TEST(BadNetwork, WithoutFaultsAllSumsAreRight) {
  for (const auto& outcome : all_reduces(5, {}, [](FaultProxy&) {})) {
    EXPECT_EQ(outcome.right, 5);
    EXPECT_EQ(outcome.error, "");
  }
}

class Damage : public testing::TestWithParam<Direction> {};

TEST_P(Damage, OneFlippedBitIsPeerLostAndNeverAWrongSum) {
  for (const auto& outcome :
       all_reduces(5, {}, [](FaultProxy& proxy) { proxy.flip_next(GetParam()); })) {
    EXPECT_EQ(outcome.wrong, 0);
    EXPECT_GE(outcome.right, 1);
    EXPECT_EQ(outcome.error, "PeerLost");
  }
}

TEST_P(Damage, FlippedBitsAnywhereArePeerLostAndNeverAWrongSum) {
  int damaged = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    // 800 kB pass in each direction: some runs are spared, most are not.
    const auto outcomes = all_reduces(
        4, {}, [](FaultProxy& proxy) { proxy.set(GetParam(), {.flip_one_in = 1 << 19}); }, seed);
    for (const auto& outcome : outcomes) {
      EXPECT_EQ(outcome.wrong, 0) << seed;
      EXPECT_TRUE(outcome.error == "PeerLost" || (outcome.error.empty() && outcome.right == 4))
          << seed << ": " << outcome.error;
    }
    damaged += outcomes[0].error.empty() ? 0 : 1;
  }
  EXPECT_GE(damaged, 10);
}

TEST_P(Damage, ACutInOneDirectionIsATimeoutWithinTheDeadlineOfTheCall) {
  for (const auto& outcome :
       all_reduces(3, {.timeout = 2s, .user_timeout = 2s},
                   [](FaultProxy& proxy) { proxy.set(GetParam(), {.cut = true}); })) {
    EXPECT_EQ(outcome.wrong, 0);
    EXPECT_TRUE(outcome.error == "Timeout" || outcome.error == "PeerLost") << outcome.error;
    // The deadline, and the time to ask who is to blame.
    EXPECT_LT(outcome.seconds, 5);
  }
}

TEST_P(Damage, AResetInTheMiddleOfACallIsPeerLost) {
  for (const std::uint64_t after : {600'000u, 700'000u, 800'000u}) {
    for (const auto& outcome : all_reduces(
             8, {}, [&](FaultProxy& proxy) { proxy.set(GetParam(), {.reset_after = after}); })) {
      EXPECT_EQ(outcome.wrong, 0);
      EXPECT_EQ(outcome.error, "PeerLost") << after;
      EXPECT_LT(outcome.seconds, 5);
    }
  }
}

TEST_P(Damage, DelayAndANarrowAndLossyWireGiveTheRightSums) {
  for (const auto& outcome : all_reduces(3, {}, [](FaultProxy& proxy) {
         proxy.set(GetParam(), {.delay = 20ms,
                                .jitter = 10ms,
                                .bytes_per_second = 4e6,
                                .loss = 0.002,
                                .loss_pause = 50ms});
       })) {
    EXPECT_EQ(outcome.right, 3) << outcome.error;
    EXPECT_GE(outcome.seconds, 0.02);
  }
}

INSTANTIATE_TEST_SUITE_P(BadNetwork, Damage, testing::Values(kThere, kBack), [](const auto& info) {
  return info.param == kThere ? std::string("ToRank0") : "FromRank0";
});

TEST(BadNetwork, AResetOnCommandIsPeerLost) {
  for (const auto& outcome : all_reduces(3, {}, [](FaultProxy& proxy) { proxy.reset(); })) {
    EXPECT_EQ(outcome.wrong, 0);
    EXPECT_EQ(outcome.error, "PeerLost");
  }
}

TEST(BadNetwork, AStopIsWaitedFor) {
  std::thread resumer;
  const auto stop_for_a_while = [&](FaultProxy& proxy) {
    proxy.set(kBack, {.stopped = true});
    resumer = std::thread([&proxy] {
      std::this_thread::sleep_for(300ms);
      proxy.set(kBack, {});
    });
  };
  for (const auto& outcome : all_reduces(3, {}, stop_for_a_while, 1, [&] { resumer.join(); })) {
    EXPECT_EQ(outcome.right, 3) << outcome.error;
  }
}

}  // namespace
}  // namespace yoke::comm
