#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "tests/cli/call.h"
#include "yoke/base/exit_code.h"

namespace yoke::test {
namespace {

using testing::HasSubstr;

const std::vector<std::vector<std::string>> kCommands = {{"train"},  {"eval"},   {"hash"},
                                                         {"replay"}, {"config"}, {"config", "show"},
                                                         {"launch"}, {"doctor"}};

TEST(Program, HelpNamesEveryCommandAndGoesToStdout) {
  auto answer = yoke({"--help"});
  EXPECT_EQ(answer.exit_code, kExitOk);
  EXPECT_EQ(answer.err, "");
  for (const auto& command : kCommands) EXPECT_THAT(answer.out, HasSubstr("\n  " + command[0]));
}

TEST(Program, HelpOfEachCommandHasExamplesOfThatCommand) {
  for (auto words : kCommands) {
    std::string typed = "yoke";
    for (const auto& word : words) typed += ' ' + word;
    words.push_back("--help");
    auto answer = yoke(words);
    EXPECT_EQ(answer.exit_code, kExitOk) << typed;
    auto examples = answer.out.find("Examples:");
    ASSERT_NE(examples, std::string::npos) << typed;
    EXPECT_NE(answer.out.find(typed + " ", examples), std::string::npos) << answer.out;
  }
}

TEST(Program, VersionNamesWhatThePromiseDependsOn) {
  auto answer = yoke({"--version"});
  EXPECT_EQ(answer.exit_code, kExitOk);
  for (const char* part : {"yoke ", "libtorch ", "compiler ", "build "}) {
    EXPECT_THAT(answer.out, HasSubstr(part));
  }
}

/// The numbers of enum ExitCode, with their names.
std::map<std::string, std::string> exit_codes() {
  std::map<std::string, std::string> codes;
  auto header = content_of(YOKE_SOURCE_FOLDER "/yoke/base/exit_code.h");
  std::regex line(R"((kExit\w+) = (\d+),)");
  for (std::sregex_iterator match(header.begin(), header.end(), line), end; match != end; ++match) {
    codes[(*match)[2]] = (*match)[1];
  }
  return codes;
}

TEST(Program, HelpListsEveryExitCode) {
  auto help = yoke({"--help"}).out;
  help = help.substr(help.find("Exit codes:"));
  for (const auto& [code, name] : exit_codes()) {
    EXPECT_TRUE(std::regex_search(help, std::regex("\\b" + code + "\\b"))) << name;
  }
}

TEST(Program, ThePageOfExitCodesListsThoseThatThereAre) {
  std::set<std::string> listed;
  auto page = content_of(YOKE_SOURCE_FOLDER "/docs/run-folder.md");
  std::regex number(R"(\d+)");
  for (const auto& line : lines_of(page.substr(page.find("## Exit codes")))) {
    if (!line.starts_with("| ") || !std::isdigit(static_cast<unsigned char>(line[2]))) continue;
    auto cell = line.substr(0, line.find('|', 1));
    for (std::sregex_iterator match(cell.begin(), cell.end(), number), end; match != end; ++match) {
      listed.insert(match->str());
    }
  }
  std::set<std::string> known;
  for (const auto& [code, name] : exit_codes()) known.insert(code);
  EXPECT_EQ(listed, known);
}

TEST(Program, WithoutACommandItHelpsAndEndsAsWrongUsage) {
  auto answer = yoke({});
  EXPECT_EQ(answer.exit_code, kExitUsage);
  EXPECT_THAT(answer.out, HasSubstr("Examples:"));
}

struct Mistake {
  std::vector<std::string> arguments;
  std::string answer;
};

class WrongUsage : public testing::TestWithParam<Mistake> {};

TEST_P(WrongUsage, IsAnsweredOnStderrWithExitCode2) {
  auto answer = yoke(GetParam().arguments);
  EXPECT_EQ(answer.exit_code, kExitUsage);
  EXPECT_EQ(answer.out, "");
  EXPECT_THAT(answer.err, HasSubstr(GetParam().answer));
  EXPECT_THAT(answer.err, HasSubstr("--help"));
}

INSTANTIATE_TEST_SUITE_P(
    Program, WrongUsage,
    testing::Values(
        Mistake{{"trian", "x.toml"}, "Did you mean train?"},
        Mistake{{"xyzzy"}, "has no command \"xyzzy\""},
        Mistake{{"config", "shwo", "x.toml"}, "Did you mean show?"},
        Mistake{{"train", "x.toml", "--stpes", "3"}, "Did you mean --steps?"},
        Mistake{{"train", "x.toml", "--bucket_bytes=3"}, "Did you mean --bucket-bytes?"},
        Mistake{{"train", "x.toml", "--qqqqq"}, "has no flag --qqqqq"},
        Mistake{{"--verion"}, "Did you mean --version?"}, Mistake{{"train"}, "FILE is required"},
        Mistake{{"train", "x.toml", "y.toml"}, "y.toml"},
        Mistake{{"train", "x.toml", "-n", "0"}, "a whole number from 1 to 4096, and is \"0\""},
        Mistake{{"train", "x.toml", "-n", "010"}, "and is \"010\""},
        Mistake{{"train", "x.toml", "--steps", "9223372036854775808"}, "9223372036854775808"},
        Mistake{{"train", "x.toml", "--grace", "inf"}, "seconds from 0 to 86400"},
        Mistake{{"hash", "x", "--step", "-1"}, "a whole number of at least 0"},
        Mistake{{"train", "x.toml", "-n", "two"}, "two"},
        Mistake{{"train", "x.toml", "-n", "2", "--mesh", "data=3"}, "disagree"},
        Mistake{{"replay", "digits", "--step", "1"}, "--micro-batch is required"},
        Mistake{{"hash", "no-such-run"}, "there is no run runs/no-such-run"},
        Mistake{{"launch", "-n", "2"}, "launch needs a program"},
        Mistake{{"doctor", "--ranks", "0"}, "a whole number from 1"},
        Mistake{{"doctor", "--color", "blue"}, "blue"},
        Mistake{{"launch", "-n", "2", "--", "no-such-program"}, "no program \"no-such-program\""},
        Mistake{{"launch", "-n", "2", "--log-ranks", "2", "--", "true"}, "names rank 2"}));

}  // namespace
}  // namespace yoke::test
