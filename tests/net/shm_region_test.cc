#include "yoke/net/shm/region.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "tests/support/spawn_ranks.h"
#include "yoke/base/error.h"

namespace yoke::net {
namespace {

TEST(ShmRegion, ThreadsSeeOneMemoryThatIsZeroAtFirst) {
  const auto memory = make_thread_shared_memory();
  EXPECT_TRUE(memory->within_one_process());
  std::shared_ptr<SharedRegion> opened;
  // Opening may come first.
  std::jthread opener(
      [&] { opened = memory->open("a", Deadline::after(std::chrono::seconds(20))); });
  const auto created = memory->create("a", 10'000);
  opener.join();
  ASSERT_EQ(opened->bytes().size(), 10'000u);
  for (const std::byte byte : opened->bytes()) ASSERT_EQ(byte, std::byte{0});
  created->bytes()[9'999] = std::byte{7};
  EXPECT_EQ(opened->bytes()[9'999], std::byte{7});
}

TEST(ShmRegion, ANameIsFreeAgainWhenNobodyHoldsItsRegion) {
  const auto memory = make_thread_shared_memory();
  auto region = memory->create("a", 64);
  EXPECT_THROW(memory->create("a", 64), InternalError);
  region.reset();
  EXPECT_NO_THROW(memory->create("a", 64));
  EXPECT_THROW(memory->open("b", Deadline::after(std::chrono::milliseconds(20))), Timeout);
  EXPECT_EQ(memory->create("empty", 0)->bytes().size(), 0u);
}

TEST(ShmRegion, ProcessesSeeOneMemory) {
  const auto outcomes = test::run_processes(3, [](World world) -> std::string {
    const auto deadline = Deadline::after(std::chrono::seconds(20));
    auto& memory = world.shared_memory();
    EXPECT_FALSE(memory.within_one_process());
    const std::size_t bytes = std::size_t{4} << 20;
    const auto region = world.rank() == 0 ? memory.create("r", bytes) : memory.open("r", deadline);
    region->bytes()[world.rank()] = std::byte(world.rank() + 1);
    world.store().add("written", 1);
    while (world.store().add("written", 0) < 3) std::this_thread::yield();
    std::string seen;
    for (int rank = 0; rank < 3; ++rank) seen += cat(static_cast<int>(region->bytes()[rank]), " ");
    // The creator must not let go before the others have looked.
    world.store().add("read", 1);
    while (world.store().add("read", 0) < 3) std::this_thread::yield();
    return seen;
  });
  for (const auto& outcome : outcomes) EXPECT_EQ(outcome.text, "1 2 3 ") << outcome;
}

TEST(ShmRegion, ARegionWhoseProcessIsGoneIsAnErrorThatNamesIt) {
  const auto store = make_memory_store();
  const auto memory = make_process_shared_memory(store);
  // No process has this id: it is above every pid_max.
  store->set("shm/gone", "1073741823:5:64");
  try {
    memory->open("gone", Deadline::after(std::chrono::seconds(1)));
    FAIL();
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("1073741823"));
    EXPECT_THAT(error.what(), testing::HasSubstr("gone"));
  }
  EXPECT_THROW(memory->open("never", Deadline::after(std::chrono::milliseconds(20))), Timeout);
}

TEST(ShmRegion, HostIdentityIsTheSameForAProcessAndItsChildren) {
  const std::string here = host_identity();
  EXPECT_GT(here.size(), 36u);
  for (const auto& outcome : test::run_processes(2, [](World) { return host_identity(); })) {
    EXPECT_EQ(outcome.text, here);
  }
}

}  // namespace
}  // namespace yoke::net
