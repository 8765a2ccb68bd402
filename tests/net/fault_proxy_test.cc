// The fault proxy between two plain sockets: the effect of each fault on bytes, order and ends.

#include "tests/support/fault_proxy.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "yoke/base/error.h"

namespace yoke::test {
namespace {

using namespace std::chrono_literals;

std::vector<std::byte> counting(std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(i * 7 + i / 251);
  return out;
}

net::Address loopback() {
  return net::resolve("127.0.0.1", 0, Deadline::after(5s));
}

/// How a stream ended, and what came before.
struct Received {
  std::vector<std::byte> bytes;
  std::string end;  ///< "closed", "reset", or "nothing more" at the deadline
  double seconds = 0;
};

/// A caller and a target with a proxy between them, all in this thread.
class FaultProxySockets : public testing::Test {
 protected:
  void connect(std::uint64_t seed = 1) {
    proxy_ = std::make_unique<FaultProxy>(net::own_address(listening_.number()).text(), seed);
    call();
  }
  void call() {
    caller_ = net::start_connecting(net::resolve(proxy_->address(), Deadline::after(5s)));
    ASSERT_TRUE(net::wait_for(listening_.number(), POLLIN, Deadline::after(10s)));
    target_ = net::accept_from(listening_.number());
    ASSERT_TRUE(net::wait_for(caller_.number(), POLLOUT, Deadline::after(10s)));
  }

  /// Sends all and reads at the other end until `count` bytes are there, the stream has ended, or
  /// `limit` has passed.
  Received pass(const net::Descriptor& from, const net::Descriptor& to,
                std::span<const std::byte> bytes, std::size_t count,
                Clock::duration limit = 20s) const {
    Received got;
    const auto start = Clock::now();
    const auto deadline = Deadline::after(limit);
    std::vector<std::byte> buffer(1 << 16);
    while (got.bytes.size() < count && got.end.empty()) {
      if (!bytes.empty()) {
        const auto sent = ::send(from.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
      }
      const auto more = ::recv(to.number(), buffer.data(), buffer.size(), 0);
      if (more > 0) {
        got.bytes.insert(got.bytes.end(), buffer.begin(), buffer.begin() + more);
      } else if (more == 0 || errno == ECONNRESET) {
        got.end = more == 0 ? "closed" : "reset";
      } else if (deadline.passed()) {
        got.end = "nothing more";
      } else {
        pollfd both[] = {{to.number(), POLLIN, 0},
                         {from.number(), static_cast<short>(bytes.empty() ? 0 : POLLOUT), 0}};
        ::poll(both, bytes.empty() ? 1 : 2, net::poll_milliseconds(deadline));
      }
    }
    got.seconds = Seconds(Clock::now() - start).count();
    return got;
  }
  Received there(std::span<const std::byte> bytes, std::size_t count,
                 Clock::duration limit = 20s) const {
    return pass(caller_, target_, bytes, count, limit);
  }
  Received back(std::span<const std::byte> bytes, std::size_t count,
                Clock::duration limit = 20s) const {
    return pass(target_, caller_, bytes, count, limit);
  }

  net::Descriptor listening_ = net::listen_on(loopback());
  std::unique_ptr<FaultProxy> proxy_;
  net::Descriptor caller_, target_;
};

constexpr auto kThere = Direction::kThere;
constexpr auto kBack = Direction::kBack;

TEST_F(FaultProxySockets, PassesBytesAndEndsOnBothWays) {
  connect();
  const auto sent = counting(5'000'000);
  EXPECT_EQ(there(sent, sent.size()).bytes, sent);
  EXPECT_EQ(back(sent, sent.size()).bytes, sent);
  EXPECT_EQ(proxy_->tally(kThere, 0).passed, sent.size());
  ::shutdown(caller_.number(), SHUT_WR);
  EXPECT_EQ(there({}, 1).end, "closed");
  // Half closed: the other direction still works.
  EXPECT_EQ(back(sent, sent.size()).bytes, sent);
  ::shutdown(target_.number(), SHUT_WR);
  EXPECT_EQ(back({}, 1).end, "closed");
}

TEST_F(FaultProxySockets, DelaysTheDirectionThatWasAsked) {
  connect();
  proxy_->set(kThere, {.delay = 100ms});
  const auto sent = counting(1000);
  const auto slow = there(sent, sent.size());
  EXPECT_EQ(slow.bytes, sent);
  EXPECT_GE(slow.seconds, 0.1);
  EXPECT_LT(back(sent, sent.size()).seconds, 0.1);
}

TEST_F(FaultProxySockets, LimitsTheBandwidth) {
  connect();
  proxy_->set(kThere, {.bytes_per_second = 1e6});
  const auto sent = counting(300'000);
  const auto slow = there(sent, sent.size());
  EXPECT_EQ(slow.bytes, sent);
  EXPECT_GE(slow.seconds, (300'000.0 - FaultyPath::kBucketBytes) / 1e6 - 0.001);
  EXPECT_LT(slow.seconds, 3);
}

TEST_F(FaultProxySockets, ResetsBothEndsAfterExactlySoManyBytes) {
  for (const std::uint64_t bytes : {1u, 1448u, 100'001u}) {
    connect();
    proxy_->set(kThere, {.reset_after = bytes});
    const auto sent = counting(200'000);
    const auto got = there(sent, sent.size());
    EXPECT_EQ(got.bytes, counting(bytes));
    EXPECT_EQ(got.end, "reset");
    EXPECT_EQ(back({}, 1).end, "reset");
    EXPECT_EQ(proxy_->tally(kThere, 0).passed, bytes);
  }
}

TEST_F(FaultProxySockets, ResetsWhenItIsTold) {
  connect();
  const auto sent = counting(1000);
  EXPECT_EQ(there(sent, sent.size()).bytes, sent);
  proxy_->reset();
  EXPECT_EQ(there({}, 1).end, "reset");
  EXPECT_EQ(back({}, 1).end, "reset");
  // The next connection is a new one.
  call();
  EXPECT_EQ(there(sent, sent.size()).bytes, sent);
  EXPECT_EQ(proxy_->connections(), 2u);
}

TEST_F(FaultProxySockets, AResetOfOneEndReachesTheOther) {
  connect();
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(caller_.number(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  caller_.reset();
  EXPECT_EQ(there({}, 1).end, "reset");
}

TEST_F(FaultProxySockets, TheSameSeedDamagesTheSameBytes) {
  const auto sent = counting(200'000);
  std::vector<std::vector<std::byte>> got;
  for (const std::uint64_t seed : {5, 5, 6}) {
    connect(seed);
    proxy_->set(kThere, {.flip_one_in = 1000});
    got.push_back(there(sent, sent.size()).bytes);
    std::vector<std::uint64_t> changed;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      if (got.back()[i] != sent[i]) changed.push_back(i);
    }
    EXPECT_EQ(changed, proxy_->tally(kThere, 0).flipped);
    EXPECT_GT(changed.size(), 100u);
    EXPECT_EQ(back(sent, sent.size()).bytes, sent);
  }
  EXPECT_EQ(got[0], got[1]);
  EXPECT_NE(got[0], got[2]);
}

TEST_F(FaultProxySockets, FlipsABitWhenItIsTold) {
  connect();
  EXPECT_EQ(there(counting(10), 10).bytes, counting(10));
  proxy_->flip_next(kThere);
  auto expected = counting(20);
  expected[0] ^= std::byte{1};
  EXPECT_EQ(there(counting(20), 20).bytes, expected);
  EXPECT_EQ(proxy_->tally(kThere, 0).flipped, std::vector<std::uint64_t>{10});
}

TEST_F(FaultProxySockets, ACutInOneDirectionSwallowsAndTellsNobody) {
  connect();
  proxy_->change(kThere, [](PathFaults& faults) { faults.cut = true; });
  EXPECT_EQ(there(counting(1000), 1, 100ms).end, "nothing more");
  EXPECT_EQ(back(counting(1000), 1000).bytes, counting(1000));
  EXPECT_EQ(proxy_->tally(kThere, 0).swallowed, 1000u);
  proxy_->change(kThere, [](PathFaults& faults) { faults.cut = false; });
  EXPECT_EQ(there(counting(10), 10).bytes, counting(10));
}

TEST_F(FaultProxySockets, TheEndOfAProcessBehindACutIsNotSeen) {
  connect();
  proxy_->set(kThere, {.cut = true});
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(caller_.number(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  caller_.reset();
  EXPECT_EQ(pass(target_, target_, {}, 1, 100ms).end, "nothing more");
}

TEST_F(FaultProxySockets, StoppedItFillsTheWindowAndResumedItLosesNothing) {
  connect();
  proxy_->set(kThere, {.stopped = true});
  const auto sent = counting(30'000'000);
  // What the kernel's buffers take, and no more.
  std::size_t taken = 0;
  while (true) {
    const auto more =
        ::send(caller_.number(), sent.data() + taken, sent.size() - taken, MSG_NOSIGNAL);
    if (more > 0) {
      taken += static_cast<std::size_t>(more);
    } else if (!net::wait_for(caller_.number(), POLLOUT, Deadline::after(200ms))) {
      break;
    }
  }
  EXPECT_LT(taken, sent.size());
  EXPECT_EQ(there({}, 1, 50ms).end, "nothing more");
  proxy_->set(kThere, {});
  const auto got = there(std::span(sent).subspan(taken), sent.size());
  EXPECT_EQ(got.bytes, sent);
}

TEST_F(FaultProxySockets, WithoutATargetTheCallerIsReset) {
  const auto nobody = net::own_address(listening_.number()).text();
  listening_.reset();
  FaultProxy proxy(nobody, 1);
  caller_ = net::start_connecting(net::resolve(proxy.address(), Deadline::after(5s)));
  net::wait_for(caller_.number(), POLLOUT, Deadline::after(5s));
  EXPECT_EQ(pass(caller_, caller_, {}, 1).end, "reset");
}

std::size_t descriptors() {
  return static_cast<std::size_t>(std::distance(
      std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator{}));
}

std::ptrdiff_t threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       std::filesystem::directory_iterator{});
}

TEST_F(FaultProxySockets, LeavesNothing) {
  // A sanitizer starts a thread of its own with the first of ours.
  std::thread([] {}).join();
  const auto descriptors_before = descriptors();
  const auto threads_before = threads();
  connect();
  there(counting(100'000), 1000);
  EXPECT_GT(descriptors(), descriptors_before);
  proxy_.reset();
  EXPECT_EQ(pass(caller_, caller_, {}, 1).end, "reset");
  caller_.reset();
  target_.reset();
  EXPECT_EQ(descriptors(), descriptors_before);
  // The kernel lists a thread for a moment after it was joined.
  for (const auto limit = Deadline::after(5s); !limit.passed() && threads() > threads_before;)
    ::poll(nullptr, 0, 1);
  EXPECT_LE(threads(), threads_before);
}

}  // namespace
}  // namespace yoke::test
