// Law 4, nothing is torn: a process killed at any system call of a save leaves the old file or the
// new.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/support/kill_at_syscall.h"
#include "yoke/base/files.h"

namespace yoke {
namespace {

namespace fs = std::filesystem;
using Write = std::function<void(const fs::path&, const std::string&)>;

const std::string kOld(5000, 'o');
const std::string kNew(70000, 'n');

struct Outcome {
  std::size_t kills = 0;
  std::set<std::string> contents;
};

/// Replaces kOld by kNew, killed at each system call in turn, and gathers what a reader finds then.
Outcome kill_everywhere(const Write& write) {
  Outcome outcome;
  for (bool killed = true; killed;) {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "file";
    std::ofstream(path) << kOld;
    killed = test::kill_at_syscall(outcome.kills + 1, [&] { write(path, kNew); });
    outcome.contents.insert(read_file(path));
    if (killed) {
      ++outcome.kills;
    } else {
      EXPECT_EQ(read_file(path), kNew);
    }
  }
  return outcome;
}

TEST(TornFile, AKilledWriterLeavesTheOldFileOrTheNew) {
  const Outcome outcome = kill_everywhere([](const fs::path& path, const std::string& content) {
    write_file_atomically(path, content);
  });
  EXPECT_GE(outcome.kills, 8u) << "open, write, fsync, close, rename, open, fsync, close";
  EXPECT_EQ(outcome.contents, (std::set{kOld, kNew}));
}

// The test above can fail: a writer that is not atomic is found out.
TEST(TornFile, AWriterThatOverwritesIsFoundOut) {
  const Outcome outcome = kill_everywhere([](const fs::path& path, const std::string& content) {
    std::ofstream file(path, std::ios::binary);
    file << content.substr(0, 40000) << std::flush << content.substr(40000);
  });
  EXPECT_TRUE(outcome.contents.contains(""));
  EXPECT_TRUE(outcome.contents.contains(kNew.substr(0, 40000)));
}

// A power cut, unlike a kill, also loses what was not synced: the order of the calls is all there
// is to see.
TEST(TornFile, TheContentIsSyncedBeforeTheRenameAndTheFolderAfterIt) {
  const TemporaryFolder folder;
  const auto calls =
      test::system_calls_of([&] { write_file_atomically(folder.path() / "file", kNew); });
  std::vector<long> order;
  std::copy_if(calls.begin(), calls.end(), std::back_inserter(order), [](long call) {
    return call == SYS_write || call == SYS_fsync || call == SYS_rename || call == SYS_renameat2;
  });
  EXPECT_THAT(order, testing::ElementsAre(SYS_write, SYS_fsync,
                                          testing::AnyOf(SYS_rename, SYS_renameat2), SYS_fsync));
}

TEST(TornFile, WhatKilledWritersLeaveIsSwept) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "file";
  std::ofstream(folder.path() / ".hidden") << "a user's own";
  std::size_t left = 0;
  for (std::size_t n = 1; test::kill_at_syscall(n, [&] { write_file_atomically(path, kNew); });
       ++n) {
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      left += entry.path() != path && entry.path().filename() != ".hidden";
    }
    remove_abandoned_temporaries(folder.path());
  }
  EXPECT_GT(left, 0u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 2);
}

}  // namespace
}  // namespace yoke
