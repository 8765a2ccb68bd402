#include "yoke/observe/jsonl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/kill_at_syscall.h"
#include "yoke/base/error.h"
#include "yoke/base/files.h"

namespace yoke {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class JsonLinesFile : public testing::Test {
 protected:
  void put(const std::string& content) { write_file_atomically(path_, content); }
  std::string cut(std::int64_t limit) {
    JsonLines::keep_below(path_, "step", limit);
    return read_file(path_);
  }
  std::string error_of(const std::string& content) {
    put(content);
    try {
      JsonLines::keep_below(path_, "step", 100);
    } catch (const DataError& error) {
      EXPECT_EQ(read_file(path_), content) << "it stays as it was";
      return error.what();
    }
    return "no error";
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "metrics.jsonl";
};

TEST_F(JsonLinesFile, ALineIsAnObjectAndIsAppended) {
  {
    JsonLines lines(path_);
    lines.append({{"step", 0}, {"text", "two\nlines"}});
    lines.append({{"step", 1}, {"loss", std::nan("")}});
    lines.flush_durably();
  }
  JsonLines(path_).append({{"step", 2}, {"text", "not \xff UTF-8"}});
  EXPECT_EQ(read_file(path_),
            "{\"step\":0,\"text\":\"two\\nlines\"}\n{\"loss\":null,\"step\":1}\n"
            "{\"step\":2,\"text\":\"not \xEF\xBF\xBD UTF-8\"}\n");
  EXPECT_THROW(JsonLines(folder_.path() / "missing" / "file"), IoError);
}

TEST_F(JsonLinesFile, EveryDoubleSurvives) {
  JsonLines lines(path_);
  for (const double value : {0.1, 1e-310, 1.7976931348623157e308, -0.0, 1.0 / 3}) {
    lines.append({{"loss", value}});
    const std::string text = read_file(path_);
    const auto last = text.rfind('\n', text.size() - 2);
    const auto start = last == std::string::npos ? 0 : last + 1;
    EXPECT_EQ(json::parse(text.substr(start)).at("loss").get<double>(), value);
  }
}

TEST_F(JsonLinesFile, AKilledWriterLeavesWholeLines) {
  std::set<std::string> contents;
  for (std::size_t n = 1, killed = 1; killed != 0; ++n) {
    std::filesystem::remove(path_);
    killed = test::kill_at_syscall(n, [&] {
      JsonLines lines(path_);
      lines.append({{"step", 0}});
      lines.append({{"step", 1}});
      lines.flush_durably();
    });
    if (std::filesystem::exists(path_)) contents.insert(read_file(path_));
  }
  EXPECT_EQ(contents,
            (std::set<std::string>{"", "{\"step\":0}\n", "{\"step\":0}\n{\"step\":1}\n"}));
}

TEST_F(JsonLinesFile, AFullDiskLeavesNoPartOfALine) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100, 100};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    JsonLines lines(path_);
    lines.append({{"step", 0}});
    int failures = 0;
    for (int i = 0; i < 2; ++i) {
      try {
        lines.append({{"text", std::string(200, 'x')}});
      } catch (const IoError&) {
        ++failures;
      }
    }
    lines.append({{"step", 1}});
    ::_exit(failures);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_EQ(read_file(path_), "{\"step\":0}\n{\"step\":1}\n");
}

TEST_F(JsonLinesFile, OpeningDropsATornLastLine) {
  const std::string longer(10000, 'x');  // more than the piece that is looked at in one go
  for (const std::string& whole :
       {std::string(), std::string("{\"step\":0}\n"), "\"" + longer + "\"\n"}) {
    for (const std::string& torn : {std::string(), std::string("{\"st"), longer}) {
      put(whole + torn);
      JsonLines(path_).append({{"step", 1}});
      EXPECT_EQ(read_file(path_), whole + "{\"step\":1}\n");
    }
  }
}

TEST_F(JsonLinesFile, KeepsTheLinesBelowTheLimit) {
  const std::string all = "{\"step\":0}\n{\"step\":1}\n{\"step\":1}\n{\"step\":2}\n";
  put(all);
  EXPECT_EQ(cut(9), all);
  EXPECT_EQ(cut(2), "{\"step\":0}\n{\"step\":1}\n{\"step\":1}\n");
  EXPECT_EQ(cut(1), "{\"step\":0}\n");
  EXPECT_EQ(cut(0), "");
  JsonLines::keep_below(folder_.path() / "missing.jsonl", "step", 1);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "missing.jsonl"));
}

// Lines of different ranks need not come in the order of the steps.
TEST_F(JsonLinesFile, KeepsThemWhereverTheyStand) {
  put("{\"step\":5}\n{\"step\":1}\n{\"step\":6}\n{\"step\":2}\n");
  EXPECT_EQ(cut(5), "{\"step\":1}\n{\"step\":2}\n");
}

TEST_F(JsonLinesFile, ATornLastLineIsDropped) {
  for (const std::string torn :
       {"{\"step\":", "{\"step\":1", "garbage", "garbage\n", "7\n", "\n"}) {
    put("{\"step\":0}\n" + torn);
    EXPECT_EQ(cut(9), "{\"step\":0}\n") << torn;
  }
  put("{\"step\":0}\n{\"step\":1}");
  EXPECT_EQ(cut(9), "{\"step\":0}\n{\"step\":1}\n") << "only the line break is missing";
}

TEST_F(JsonLinesFile, DamageBeforeTheLastLineIsAnError) {
  EXPECT_THAT(error_of("{\"step\":0}\n{\"step\":\n{\"step\":2}\n"), HasSubstr("metrics.jsonl:2:"));
  EXPECT_THAT(error_of("{\"loss\":0}\n{\"step\":2}\n"), HasSubstr("the number \"step\""));
  EXPECT_THAT(error_of("{\"step\":\"0\"}\n{\"step\":2}\n"), HasSubstr(":1:"));
  EXPECT_THAT(error_of("[0]\n{\"step\":2}\n"), HasSubstr(":1:"));
  EXPECT_THAT(error_of("\n{\"step\":2}\n"), HasSubstr(":1:"));
}

}  // namespace
}  // namespace yoke
