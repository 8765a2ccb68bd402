// What a coordinator knows after its own death.
#include "yoke/elastic/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "yoke/base/files.h"

namespace yoke::elastic {
namespace {

using testing::ElementsAre;

TEST(Journal, TheNewestRecordOfTheJobCounts) {
  TemporaryFolder folder;
  const auto path = folder.path() / "journal";
  EXPECT_FALSE(Journal::newest(path, "a").has_value());
  {
    Journal journal(path);
    EXPECT_FALSE(Journal::newest(path, "a").has_value()) << "an empty file";
    journal.append("a", {.generation = 1, .members = {0, 1}, .next_worker = 2, .wanted = 2});
    journal.append(
        "a", {.generation = 2, .members = {0, 2}, .next_worker = 3, .wanted = 4, .reached = 17});
  }
  const auto record = Journal::newest(path, "a");
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->generation, 2u);
  EXPECT_THAT(record->members, ElementsAre(0, 2));
  EXPECT_EQ(record->next_worker, 3);
  EXPECT_EQ(record->wanted, 4);
  EXPECT_EQ(record->reached, 17);
  EXPECT_FALSE(Journal::newest(path, "b").has_value()) << "another job's generation means nothing";
}

TEST(Journal, ARecordIsThereWholeOrNotAtAll) {
  TemporaryFolder folder;
  const auto path = folder.path() / "journal";
  Journal(path).append("a", {.generation = 1, .members = {0}, .next_worker = 1, .wanted = 1});
  const auto first = std::filesystem::file_size(path);
  Journal(path).append("a", {.generation = 2, .members = {0}, .next_worker = 1, .wanted = 1});
  const auto both = std::filesystem::file_size(path);
  // Killed after any number of bytes of the second.
  for (auto size = both; size-- > first;) {
    std::filesystem::resize_file(path, size);
    ASSERT_EQ(Journal::newest(path, "a")->generation, 1u) << size;
  }
  Journal(path).append("a", {.generation = 3, .members = {0}, .next_worker = 1, .wanted = 1});
  EXPECT_EQ(Journal::newest(path, "a")->generation, 3u);
}

}  // namespace
}  // namespace yoke::elastic
