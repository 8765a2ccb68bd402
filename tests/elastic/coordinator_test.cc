// A real coordinator and members that are threads, over real sockets.
#include "yoke/elastic/coordinator.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <barrier>
#include <functional>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/comm/communicator.h"
#include "yoke/elastic/member.h"

namespace yoke::elastic {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A coordinator that can be stopped and started again on the same port, as an agent does it.
class CoordinatorTest : public testing::Test {
 protected:
  CoordinatorTest()
      : listening_(net::listen_on(net::resolve("127.0.0.1", 0, Deadline()))),
        address_(net::own_address(listening_.number())) {}
  ~CoordinatorTest() override { stop(); }

  void start(int workers, Clock::duration lease = seconds(10)) {
    end_ = false;
    thread_ = std::jthread([this, workers, lease] {
      Coordinator coordinator(
          net::Descriptor(::fcntl(listening_.number(), F_DUPFD_CLOEXEC, 0)),
          {.job = "test",
           .token = "secret",
           .journal = folder_.path() / "journal",
           .roster = {.workers = workers, .min_workers = workers, .lease = lease}});
      coordinator.serve(end_);
    });
  }
  void stop() {
    end_ = true;
    if (thread_.joinable()) thread_.join();
  }
  std::unique_ptr<Member> member(WorkerId worker, Clock::duration lease = seconds(10)) const {
    return std::make_unique<Member>(MemberOptions{.coordinator = address_,
                                                  .job = "test",
                                                  .token = "secret",
                                                  .worker = worker,
                                                  .lease = lease,
                                                  .beat = milliseconds(20)});
  }
  /// What the world of a view sums up to, over TCP.
  static std::int64_t sum_in(Member& member, const View& view, std::int64_t mine) {
    const World world = member.enter(view);
    auto communicator = comm::Communicator::create(world, {.transport = comm::TransportKind::kTcp});
    communicator->all_reduce(std::as_writable_bytes(std::span(&mine, 1)), DType::kInt64,
                             comm::ReduceOp::kSum);
    communicator->barrier();
    return mine;
  }
  static void together(int count, const std::function<void(int)>& work) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  }

  TemporaryFolder folder_;
  net::Descriptor listening_;
  net::Address address_;
  std::atomic<bool> end_{false};
  std::jthread thread_;
};

TEST_F(CoordinatorTest, MembersMeetInOneGenerationAfterTheOther) {
  start(3);
  together(3, [&](int i) {
    auto self = member(i);
    for (std::uint64_t generation = 1; generation <= 3; ++generation) {
      const auto view = self->next({.live = generation > 1, .step = 5}, {});
      ASSERT_TRUE(view.has_value());
      EXPECT_EQ(view->place.generation, generation);
      EXPECT_EQ(view->place.size, 3);
      EXPECT_EQ(view->anyone_live, generation > 1);
      EXPECT_EQ(sum_in(*self, *view, 1 << i), 7);
    }
  });
}

TEST_F(CoordinatorTest, AnAbortEndsACollectiveThatWaits) {
  start(3);
  together(3, [&](int i) {
    auto self = member(i);
    auto view = self->next({}, {});
    ASSERT_TRUE(view.has_value());
    std::optional<Break> why;
    // It outlives the hook.
    std::unique_ptr<comm::Communicator> communicator;
    try {
      const World world = self->enter(*view);
      communicator = comm::Communicator::create(
          world, {.transport = comm::TransportKind::kTcp, .timeout = seconds(100)});
      // Once all are there, so that none of them is aborted in the middle of the creation.
      communicator->barrier();
      self->on_abort([&](const std::string& reason) { communicator->abort(reason); });
      if (i == 2) {
        // It leaves the generation, and its connections stand: only the coordinator can tell.
        why = Break{.lost_rank = -1, .message = "rank 2 cannot go on"};
        view = self->next({}, why);
      } else {
        communicator->barrier();
        ADD_FAILURE() << "rank 2 never came";
      }
      self->on_abort({});
    } catch (const CommunicationError& error) {
      self->on_abort({});
      why = Break{.lost_rank = -1, .message = error.what()};
      view = self->next({}, why);
    }
    ASSERT_TRUE(view.has_value());
    EXPECT_EQ(sum_in(*self, *view, 1 << i), 7);
  });
}

TEST_F(CoordinatorTest, AGenerationThatFormsIsCancelledToo) {
  start(2);
  together(2, [&](int i) {
    auto self = member(i);
    auto view = self->next({}, {});
    ASSERT_TRUE(view.has_value());
    if (i == 1) {
      // It turns round before it has entered; the other waits for it in the store.
      view = self->next({}, Break{.lost_rank = -1, .message = "changed its mind"});
    } else {
      EXPECT_THROW(sum_in(*self, *view, 1), CommunicationError);
      view = self->next({}, Break{.lost_rank = -1, .message = "the other did not come"});
    }
    ASSERT_TRUE(view.has_value());
    EXPECT_EQ(view->place.generation, 2u);
    EXPECT_EQ(sum_in(*self, *view, 1 << i), 3);
  });
}

TEST_F(CoordinatorTest, AnOldViewIsRefusedByTheNewWorld) {
  start(1);
  auto self = member(0);
  const auto old = self->next({}, {});
  const auto fresh = self->next({}, {});
  ASSERT_TRUE(old && fresh);
  View forged = *old;
  forged.store_at = fresh->store_at;
  forged.place.size = 2;
  forged.place.rank = 1;
  EXPECT_THROW(self->enter(forged), CommunicationError);
}

TEST_F(CoordinatorTest, ARestartDisturbsNobody) {
  start(2);
  std::barrier<> all(3);
  std::jthread outside([&] {
    all.arrive_and_wait();  // Both have met.
    stop();
    start(2);
    all.arrive_and_wait();
  });
  together(2, [&](int i) {
    auto self = member(i);
    const auto view = self->next({}, {});
    ASSERT_TRUE(view.has_value());
    const World world = self->enter(*view);
    auto communicator = comm::Communicator::create(world, {.transport = comm::TransportKind::kTcp});
    communicator->barrier();
    all.arrive_and_wait();
    communicator->barrier();
    all.arrive_and_wait();
    communicator->barrier();
    const auto next = self->next({.live = true, .step = 1}, {});
    ASSERT_TRUE(next.has_value());
    EXPECT_EQ(next->place.generation, 2u) << "the journal remembers the one that stood";
    EXPECT_EQ(sum_in(*self, *next, 1 << i), 3);
  });
}

TEST_F(CoordinatorTest, AWorkerHoldsWhileItsLeaseHasRunOut) {
  const auto lease = milliseconds(400);
  start(1, lease);
  auto self = member(0, lease);
  ASSERT_TRUE(self->next({}, {}).has_value());
  self->hold();
  stop();
  std::atomic<bool> through{false};
  std::jthread worker([&] {
    // It goes on for as long as the lease allows, and not longer.
    for (const auto until = Deadline::after(lease); !until.passed();) self->hold();
    through = true;
  });
  std::this_thread::sleep_for(3 * lease);
  EXPECT_FALSE(through) << "it acts while it may have been declared dead";
  start(1, lease);
  worker.join();
  EXPECT_TRUE(through);
}

TEST_F(CoordinatorTest, StrangersAndNonsenseHarmNobody) {
  start(2);
  Link stranger(address_, "test", "another secret");
  Link babbler(address_, "test", "secret");
  for (const auto until = Deadline::after(seconds(5)); !until.passed() && !babbler.connected();) {
    stranger.advance();
    babbler.advance();
    std::this_thread::sleep_for(milliseconds(5));
  }
  ASSERT_TRUE(babbler.connected());
  EXPECT_FALSE(stranger.connected());
  for (const nlohmann::json& nonsense :
       {nlohmann::json{{"say", "worker"}}, nlohmann::json{{"say", "ready"}, {"live", "no"}},
        nlohmann::json{{"say", 7}}, nlohmann::json{{"say", "request"}, {"what", "sing"}},
        nlohmann::json{{"say", "agent"}, {"running", "all"}}}) {
    babbler.push(nonsense);
    babbler.flush();
    // Some of it costs the babbler its connection; it comes back for the next.
    for (const auto until = Deadline::after(milliseconds(60)); !until.passed();) {
      babbler.advance();
      babbler.next();
      std::this_thread::sleep_for(milliseconds(2));
    }
  }
  together(2, [&](int i) {
    auto self = member(i);
    const auto view = self->next({}, {});
    ASSERT_TRUE(view.has_value());
    EXPECT_EQ(sum_in(*self, *view, 1 << i), 3);
  });
}

}  // namespace
}  // namespace yoke::elastic
