#include "yoke/base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "tests/support/scoped_variable.h"
#include "yoke/base/error.h"

namespace yoke {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  return names;
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const IoError& error) {
    return error.what();
  }
  return "no IoError";
}

/// Runs `work` in a child, so that what it changes of its process stays there. Returns its exit
/// status.
int in_child(const std::function<bool()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    bool good = false;
    try {
      good = work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    ::_exit(good ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

class Files : public testing::Test {
 protected:
  TemporaryFolder folder_;
  fs::path path_ = folder_.path() / "report.json";
};

TEST_F(Files, WhatIsWrittenIsRead) {
  for (const std::string& content :
       {std::string(), std::string("one"), std::string("\0\n\xff", 3), std::string(3000000, 'x')}) {
    write_file_atomically(path_, content);
    EXPECT_EQ(read_file(path_), content);
  }
  EXPECT_THAT(names_in(folder_.path()), UnorderedElementsAre("report.json"));
}

TEST_F(Files, FilesWithoutASizeAreRead) {
  EXPECT_THAT(read_file("/proc/self/status"), HasSubstr("VmRSS"));
}

TEST_F(Files, AMissingFileIsNamed) {
  EXPECT_THAT(message_of([&] { read_file(path_); }), HasSubstr(path_.string()));
  EXPECT_THAT(message_of([&] { read_file(folder_.path()); }), HasSubstr(folder_.path().string()));
}

TEST_F(Files, APathWithoutFolderIsTheWorkingFolder) {
  EXPECT_EQ(in_child([&] {
              fs::current_path(folder_.path());
              write_file_atomically("bare", "content");
              return read_file("bare") == "content";
            }),
            0);
  EXPECT_THAT(names_in(folder_.path()), UnorderedElementsAre("bare"));
}

TEST_F(Files, AMissingFolderIsAnErrorThatNamesIt) {
  const fs::path lost = folder_.path() / "missing" / "file";
  EXPECT_THAT(message_of([&] { write_file_atomically(lost, "x"); }), HasSubstr("missing"));
  EXPECT_FALSE(fs::exists(lost.parent_path()));
}

// The limit on the file size stands for a full disk: write(2) takes a part, then refuses.
TEST_F(Files, AFullDiskLeavesTheOldFileAndNothingElse) {
  write_file_atomically(path_, "old");
  EXPECT_EQ(in_child([&] {
              ::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{1 << 16, 1 << 16};
              ::setrlimit(RLIMIT_FSIZE, &limit);
              const std::string message =
                  message_of([&] { write_file_atomically(path_, std::string(1 << 20, 'n')); });
              return message.find("File too large") != std::string::npos &&
                     message.find("Free some space") != std::string::npos;
            }),
            0);
  EXPECT_EQ(read_file(path_), "old");
  EXPECT_THAT(names_in(folder_.path()), UnorderedElementsAre("report.json"));
}

TEST_F(Files, AFolderInTheWayIsAnErrorAndLeavesNoTemporaryFile) {
  fs::create_directories(path_ / "inside");
  EXPECT_THAT(message_of([&] { write_file_atomically(path_, "new"); }), HasSubstr("report.json"));
  EXPECT_TRUE(fs::is_directory(path_));
  EXPECT_THAT(names_in(folder_.path()), UnorderedElementsAre("report.json"));
}

TEST_F(Files, AReadOnlyFolderKeepsItsFile) {
  write_file_atomically(path_, "old");
  fs::permissions(folder_.path(), fs::perms::owner_read | fs::perms::owner_exec |
                                      fs::perms::others_read | fs::perms::others_exec);
  EXPECT_EQ(in_child([&] {
              // The superuser may write everywhere, so this child becomes somebody else.
              if (::geteuid() == 0 && ::seteuid(65534) != 0) return false;
              const std::string message = message_of([&] { write_file_atomically(path_, "new"); });
              return message.find("Permission denied") != std::string::npos &&
                     message.find(folder_.path().string()) != std::string::npos;
            }),
            0);
  fs::permissions(folder_.path(), fs::perms::owner_all);
  EXPECT_EQ(read_file(path_), "old");
  EXPECT_THAT(names_in(folder_.path()), UnorderedElementsAre("report.json"));
}

TEST_F(Files, ADurableFileWithoutCommitIsRemoved) {
  {
    DurableFile file(path_);
    file.write(std::as_bytes(std::span("abc", 3)));
    EXPECT_EQ(file.size(), 3u);
  }
  EXPECT_THAT(names_in(folder_.path()), IsEmpty());
  {
    DurableFile file(path_);
    file.write(std::as_bytes(std::span("abc", 3)));
    file.write(std::as_bytes(std::span("def", 3)));
    file.commit();
    EXPECT_THROW(file.commit(), InternalError);
    EXPECT_THROW(file.write({}), InternalError);
  }
  EXPECT_EQ(read_file(path_), "abcdef");
}

TEST_F(Files, ADurableFileNeverReplacesAnother) {
  write_file_atomically(path_, "mine");
  EXPECT_THAT(message_of([&] { DurableFile again(path_); }), HasSubstr("File exists"));
  EXPECT_EQ(read_file(path_), "mine");
}

TEST_F(Files, RenamesAFolder) {
  fs::create_directory(folder_.path() / "a");
  rename_durably(folder_.path() / "a", folder_.path() / "b");
  EXPECT_THAT(names_in(folder_.path()), UnorderedElementsAre("b"));
  EXPECT_THAT(message_of([&] { rename_durably(folder_.path() / "a", folder_.path() / "c"); }),
              HasSubstr((folder_.path() / "a").string()));
  EXPECT_THROW(sync_folder(folder_.path() / "none"), IoError);
}

TEST_F(Files, TemporaryFoldersFollowTmpdirAndLeaveNothing) {
  fs::path path;
  {
    const test::ScopedVariable variable("TMPDIR", folder_.path().string());
    const TemporaryFolder one("run"), two("run");
    path = one.path();
    EXPECT_NE(one.path(), two.path());
    EXPECT_EQ(path.parent_path(), folder_.path());
    fs::create_directories(path / "deep" / "deeper");
    write_file_atomically(path / "deep" / "file", "x");
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_THAT(names_in(folder_.path()), IsEmpty());
}

}  // namespace
}  // namespace yoke
