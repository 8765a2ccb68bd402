// yoke doctor on this machine, and on this machine made worse.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/call.h"
#include "yoke/base/exit_code.h"

namespace yoke::test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::map<std::string, nlohmann::json> checks_of(const Answer& answer) {
  std::map<std::string, nlohmann::json> checks;
  const auto object = nlohmann::json::parse(answer.out);
  for (const auto& check : object.at("checks")) {
    checks[check.at("check")] = check;
  }
  return checks;
}

/// `yoke doctor ARGUMENTS` after shell commands that make the machine worse.
Answer doctor_after(const std::string& commands, const std::string& arguments = "--json") {
  return run_program({"/bin/sh", "-c", commands + " && exec " YOKE_PROGRAM " doctor " + arguments});
}

TEST(Doctor, FindsThisMachineFitAndSaysSoInATable) {
  const auto answer = yoke({"doctor"});
  EXPECT_EQ(answer.exit_code, kExitOk) << answer.out;
  EXPECT_EQ(answer.err, "");
  for (const char* part : {"pass  libtorch", "pass  loopback", "checks, ", "0 failures"}) {
    EXPECT_THAT(answer.out, HasSubstr(part));
  }
}

TEST(Doctor, ColoursFollowTheFlagThenTheEnvironmentThenTheTerminal) {
  const std::string green = "\033[32mpass\033[0m";
  EXPECT_THAT(yoke({"doctor"}).out, Not(HasSubstr("\033")));
  EXPECT_THAT(yoke({"doctor", "--color", "always"}).out, HasSubstr(green));
  EXPECT_THAT(yoke({"doctor"}, {.environment = {"CLICOLOR_FORCE=1"}}).out, HasSubstr(green));
  EXPECT_THAT(yoke({"doctor"}, {.environment = {"CLICOLOR_FORCE=1", "NO_COLOR=1"}}).out,
              Not(HasSubstr("\033")));
  EXPECT_THAT(yoke({"doctor", "--color=never"}, {.environment = {"CLICOLOR_FORCE=1"}}).out,
              Not(HasSubstr("\033")));
}

TEST(Doctor, JsonHoldsEveryCheckOnOneLine) {
  const auto answer = yoke({"doctor", "--json"});
  EXPECT_EQ(lines_of(answer.out).size(), 1u);
  EXPECT_EQ(nlohmann::json::parse(answer.out).at("ok"), true);
  const auto checks = checks_of(answer);
  EXPECT_EQ(checks.size(), 15u);
  EXPECT_THAT(checks.at("libtorch").at("found").get<std::string>(), HasSubstr("libtorch_cpu.so"));
  for (const auto& [name, check] : checks) {
    EXPECT_EQ(check.at("advice").get<std::string>().empty(), check.at("verdict") == "pass") << name;
  }
}

TEST(Doctor, WithRanksItRunsARealAllReduce) {
  const auto answer = yoke({"doctor", "--ranks", "4", "--json"});
  EXPECT_EQ(answer.exit_code, kExitOk) << answer.out;
  const auto checks = checks_of(answer);
  for (const char* check : {"all-reduce shm", "all-reduce tcp"}) {
    EXPECT_EQ(checks.at(check).at("verdict"), "pass");
    EXPECT_THAT(checks.at(check).at("found").get<std::string>(),
                testing::MatchesRegex("4 ranks, 4 MiB in [0-9.]+ ms, the sum is right"));
  }
  // What ranks say while all is well does not matter.
  const CallOptions talkative{.environment = {"YOKE_LOG=debug"}};
  EXPECT_EQ(yoke({"doctor", "--ranks", "1"}, talkative).exit_code, kExitOk);
}

TEST(Doctor, TooFewDescriptorsFailWithExitCode71) {
  const auto answer = doctor_after("ulimit -n 40", "--json --ranks 4");
  EXPECT_EQ(answer.exit_code, kExitEnvironment);
  EXPECT_EQ(nlohmann::json::parse(answer.out).at("ok"), false);
  const auto checks = checks_of(answer);
  EXPECT_EQ(checks.at("open files").at("verdict"), "fail");
  EXPECT_THAT(checks.at("open files").at("advice").get<std::string>(), HasSubstr("ulimit -n"));
}

TEST(Doctor, ALimitOfAddressSpaceIsAWarning) {
  const auto answer = doctor_after("ulimit -v 12000000");
  EXPECT_EQ(answer.exit_code, kExitOk) << answer.out << answer.err;
  EXPECT_EQ(checks_of(answer).at("address space").at("verdict"), "warn");
}

TEST(Doctor, AFolderThatCannotBeWrittenFails) {
  const auto answer = doctor_after("cd /proc");
  EXPECT_EQ(answer.exit_code, kExitEnvironment);
  EXPECT_EQ(checks_of(answer).at("disk").at("verdict"), "fail");
}

TEST(Doctor, OneCoreOfSeveralIsSaidAndIsNoWarning) {
  const auto answer =
      run_program({"/usr/bin/taskset", "-c", "0", YOKE_PROGRAM, "doctor", "--json"});
  EXPECT_THAT(checks_of(answer).at("cores").at("found").get<std::string>(), HasSubstr("1 of "));
}

/// In namespaces of its own: where the system does not allow them the test fails with what
/// `unshare` said.
Answer doctor_in_namespaces(const std::string& flags, const std::string& commands,
                            const std::string& arguments = "--json") {
  return run_program({"/usr/bin/unshare", "--map-root-user", flags, "/bin/sh", "-c",
                      commands + " && exec " YOKE_PROGRAM " doctor " + arguments});
}

TEST(Doctor, ASmallDevShmIsAWarning) {
  const auto answer = doctor_in_namespaces("--mount", "mount -t tmpfs -o size=1m none /dev/shm");
  ASSERT_EQ(answer.exit_code, kExitOk) << answer.err;
  const auto check = checks_of(answer).at("/dev/shm");
  EXPECT_EQ(check.at("verdict"), "warn");
  EXPECT_THAT(check.at("found").get<std::string>(), HasSubstr("1.0 MiB"));
}

TEST(Doctor, ALoopbackThatIsDownFails) {
  const auto answer = doctor_in_namespaces("--net", "true", "--json --ranks 2");
  ASSERT_EQ(answer.exit_code, kExitEnvironment) << answer.err;
  const auto checks = checks_of(answer);
  EXPECT_EQ(checks.at("loopback").at("verdict"), "fail");
  EXPECT_THAT(checks.at("loopback").at("advice").get<std::string>(), HasSubstr("lo up"));
  EXPECT_EQ(checks.at("all-reduce").at("verdict"), "fail");
  EXPECT_THAT(checks.at("interface").at("found").get<std::string>(), HasSubstr("no default route"));
}

}  // namespace
}  // namespace yoke::test
