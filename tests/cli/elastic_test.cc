// yoke train while its processes die, hang, come and go: the weights are those of a run that nobody
// disturbed, every sample counts once, and events.jsonl tells what happened.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <set>

#include "tests/cli/train_folder.h"
#include "yoke/base/exit_code.h"
#include "yoke/base/hash.h"

namespace yoke::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

std::vector<json> lines_in(const std::filesystem::path& file) {
  std::vector<json> all;
  for (const std::string& line : lines_of(content_of(file))) all.push_back(json::parse(line));
  return all;
}

class Elastic : public Train {
 protected:
  /// Lines of the ledger, in order, without who computed what.
  std::vector<json> ledger(const std::string& name) const {
    std::vector<json> all = lines_in(run(name).ledger());
    for (json& line : all) {
      line.erase("rank");
      line.erase("generation");
    }
    return all;
  }
  std::vector<std::string> causes(const std::string& name) const {
    std::vector<std::string> all;
    for (const json& event : lines_in(run(name).events())) all.push_back(event["cause"]);
    return all;
  }
  json event(const std::string& name, const std::string& cause) const {
    for (const json& event : lines_in(run(name).events())) {
      if (event["cause"] == cause) return event;
    }
    return {};
  }
  /// The same plan, with nobody to disturb it.
  void train_reference(const std::vector<std::string>& flags = {}) {
    ASSERT_EQ(train("whole", flags).exit_code, kExitOk);
  }
  void expect_equal_to_reference(const std::string& name) const {
    EXPECT_EQ(report(name)["state_sha256"], report("whole")["state_sha256"]);
    EXPECT_EQ(ledger(name), ledger("whole")) << "every sample counts once";
    std::vector<json> losses, reference;
    for (const json& line : lines_in(run(name).metrics())) losses.push_back(line["loss"]);
    for (const json& line : lines_in(run("whole").metrics())) reference.push_back(line["loss"]);
    EXPECT_EQ(losses, reference);
    EXPECT_FALSE(std::filesystem::exists(run(name).coordinator()));
    EXPECT_FALSE(std::filesystem::exists(run(name).coordinator_journal()));
  }
  /// Stops a run that could go on for ever, and compares it with one that nobody disturbed until
  /// the same step.
  void stop_and_expect_equal(Call& training, const std::string& name) {
    training.send(SIGTERM);
    const auto answer = training.wait();
    ASSERT_EQ(answer.exit_code, kExitSaved) << answer.err;
    const std::string steps = report(name)["steps"].dump();
    ASSERT_EQ(train("whole", {"--steps", "1000000", "--stop-after", steps}).exit_code, kExitSaved);
    expect_equal_to_reference(name);
    expect_nothing_is_left();
  }
  json status(const std::string& name) const {
    const Answer answer = call({"status", name, "--json"});
    return answer.exit_code == kExitOk ? json::parse(answer.out) : json();
  }
  /// Waits for a generation with so many workers, all of which train.
  json status_when(const std::string& name, std::size_t workers, std::uint64_t generation) const {
    json found;
    EXPECT_TRUE(eventually([&] {
      found = status(name);
      if (!found.is_object() || found["generation"] < generation) return false;
      std::size_t running = 0;
      for (const json& worker : found["workers"]) running += worker["phase"] == "running" ? 1 : 0;
      return running == workers && found["workers"].size() == workers;
    })) << found;
    return found;
  }
  static pid_t pid_of(const json& status, int rank) {
    for (const json& worker : status["workers"]) {
      if (worker["rank"] == rank) return worker["pid"];
    }
    return -1;
  }
  static std::set<pid_t> pids_of(const json& status) {
    std::set<pid_t> all;
    for (const json& worker : status["workers"]) all.insert(worker["pid"].get<pid_t>());
    return all;
  }
  std::unique_ptr<Call> start(const std::string& name, std::vector<std::string> flags) {
    std::vector<std::string> arguments = {"train", "digits.toml", "--run", name};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return std::make_unique<Call>(arguments, here({marker_}));
  }
  void expect_nothing_is_left() const { EXPECT_THAT(processes_with(marker_), IsEmpty()); }

  const std::string marker_ = "ELASTIC_TEST=" + random_token();
};

struct Disturbance {
  const char* fault;
  const char* cause;
  const char* source;  ///< how recovery_source begins
};

class Disturbed : public Elastic,
                  public testing::WithParamInterface<std::tuple<Disturbance, const char*>> {};

/// Points at which a worker may be lost, with the fault (or faults) and what events.jsonl says of
/// it.
constexpr Disturbance kDisturbances[] = {
    {"kill@rank=1,step=5,point=in_compute", "killed", "rank 0 at step 5"},
    {"kill@rank=1,step=5,point=before_reduce", "killed", "rank 0 at step 5"},
    {"kill@rank=0,step=5,point=in_reduce", "killed", "rank 0 at step "},
    {"kill@rank=2,step=5,point=after_reduce", "killed", "rank 0 at step 6"},
    {"kill@rank=1,step=5,point=in_update", "killed", "rank 0 at step 6"},
    {"kill@rank=0,step=5,point=in_update", "killed", "rank 0 at step 6"},
    {"kill@rank=0,step=5,point=after_update", "killed", "rank 0 at step 6"},
    {"kill@rank=0,step=0,point=before_reduce", "killed", "rank 0 at step 0"},
    {"kill@rank=1,step=11,point=after_update", "killed", "rank "},
    {"kill@rank=0,step=5,point=in_update;kill@rank=2,step=5,point=in_update", "killed", "rank 0"},
    {"kill@rank=1,step=3,point=in_reduce;kill@rank=1,step=7,point=in_update", "killed", "rank 0"},
    {"kill@rank=1,step=5,point=in_compute;kill@rank=1,step=5,point=in_recovery", "killed",
     "rank 0 at step 5"},
    {"kill@rank=1,step=5,point=in_compute;kill@rank=0,step=5,point=in_recovery", "killed",
     "rank 0 at step 5"},
    {"throw@rank=1,step=5,point=in_compute", "user_error", "rank 0 at step 5"},
    {"stop@rank=1,step=5,point=in_compute", "hung", "rank 0 at step 5"},
    {"stop@rank=0,step=5,point=in_update", "hung", "rank 0 at step 6"},
    {"hang@rank=1,step=5,point=in_compute", "hung", "rank 0 at step 5"},
    {"hang@rank=2,step=5,point=before_reduce", "hung", "rank 0 at step 5"},
    {"kill@rank=0,step=8,point=checkpoint.3", "killed", "rank "},
};

TEST_P(Disturbed, EndsWithTheBitsOfARunThatNobodyDisturbed) {
  const auto& [disturbance, transport] = GetParam();
  train_reference();
  const auto answer =
      train("a",
            {"-n", "3", "--transport", transport, "--set", "elastic.lease=0.5", "--set",
             "elastic.hang_timeout=0.5", "--set", "train.checkpoint_every=4"},
            {marker_, std::string("YOKE_FAULT=") + disturbance.fault});
  ASSERT_EQ(answer.exit_code, kExitOk) << answer.err;
  expect_equal_to_reference("a");
  expect_nothing_is_left();
  const json told = event("a", disturbance.cause);
  ASSERT_TRUE(told.is_object()) << content_of(run("a").events());
  EXPECT_THAT(told["recovery_source"].get<std::string>(), StartsWith(disturbance.source));
  EXPECT_TRUE(told["rank"].is_number());
  EXPECT_TRUE(told["detect_ms"].is_number());
  EXPECT_TRUE(told["resume_ms"].is_number());
  EXPECT_FALSE(std::filesystem::exists(run("a").failure())) << "the run did not fail";
}

INSTANTIATE_TEST_SUITE_P(AtEveryPoint, Disturbed,
                         testing::Combine(testing::ValuesIn(kDisturbances),
                                          testing::Values("shm", "tcp")),
                         [](const auto& info) {
                           std::string name = std::get<1>(info.param);
                           name += std::string("_") + std::get<0>(info.param).fault;
                           for (char& c : name) c = std::isalnum(c) ? c : '_';
                           return name;
                         });

TEST_F(Elastic, EveryPlacementLivesThroughDeaths) {
  train_reference();
  const std::string faults =
      "YOKE_FAULT=kill@rank=1,step=3,point=in_compute;kill@rank=0,step=7,point=in_update";
  for (const std::string policy : {"dynamic", "proportional", "power-of-choices"}) {
    for (const std::string transport : {"shm", "tcp"}) {
      const std::string name = policy + "-" + transport;
      const auto answer = train(
          name, {"-n", "3", "--transport", transport, "--set", "elastic.placement=" + policy},
          {marker_, faults});
      ASSERT_EQ(answer.exit_code, kExitOk) << name << answer.err;
      expect_equal_to_reference(name);
    }
  }
  expect_nothing_is_left();
}

TEST_F(Elastic, AllWorkersMayDieAndTheMemoryOfTheHostGoesOn) {
  train_reference();
  for (const char* point : {"before_reduce", "in_reduce", "after_update"}) {
    const std::string name = std::string("a-") + point;
    const std::string at = std::string(",step=5,point=") + point;
    const auto answer =
        train(name, {"-n", "2"}, {marker_, "YOKE_FAULT=kill@rank=0" + at + ";kill@rank=1" + at});
    ASSERT_EQ(answer.exit_code, kExitOk) << answer.err;
    expect_equal_to_reference(name);
    const std::string source = event(name, "killed")["recovery_source"];
    // Where one outlives the other for a moment, it is the source.
    EXPECT_THAT(source, testing::AnyOf(StartsWith("memory of the host"), StartsWith("rank ")));
  }
  const auto alone = train("alone", {}, {"YOKE_FAULT=kill@rank=0,step=5,point=before_reduce"});
  ASSERT_EQ(alone.exit_code, kExitOk) << alone.err;
  expect_equal_to_reference("alone");
  EXPECT_EQ(event("alone", "killed")["recovery_source"], "memory of the host at step 5");
  expect_nothing_is_left();
}

TEST_F(Elastic, WithoutMemoryAndCheckpointNothingBeginsAnewSilently) {
  const std::string both =
      "YOKE_FAULT=kill@rank=0,step=5,point=before_reduce;kill@rank=1,step=5,point=before_reduce";
  const auto lost = train("a", {"-n", "2", "--transport", "tcp"}, {marker_, both});
  EXPECT_EQ(lost.exit_code, kExitIo) << lost.err;
  EXPECT_THAT(lost.err, HasSubstr("all workers are lost"));
  expect_nothing_is_left();

  train_reference();
  const auto saved = train(
      "b", {"-n", "2", "--transport", "tcp", "--set", "train.checkpoint_every=2"}, {marker_, both});
  ASSERT_EQ(saved.exit_code, kExitOk) << saved.err;
  expect_equal_to_reference("b");
  EXPECT_EQ(event("b", "killed")["recovery_source"], "checkpoint step 4");
}

TEST_F(Elastic, ATornUpdateWithoutSurvivorsIsNoSource) {
  train_reference();
  const auto answer = train("a", {"--set", "train.checkpoint_every=2"},
                            {marker_, "YOKE_FAULT=kill@rank=0,step=5,point=in_update"});
  ASSERT_EQ(answer.exit_code, kExitOk) << answer.err;
  expect_equal_to_reference("a");
  EXPECT_EQ(event("a", "killed")["recovery_source"], "checkpoint step 4");
}

TEST_F(Elastic, SurvivorsKeepTheirProcessesAndTheDeadOneIsReplaced) {
  auto training = start("a", {"-n", "3", "--steps", "1000000"});
  const json before = status_when("a", 3, 1);
  const pid_t victim = pid_of(before, 1);
  ASSERT_GT(victim, 0);
  ::kill(victim, SIGKILL);
  const json after = status_when("a", 3, 2);
  std::set<pid_t> survivors = pids_of(before), now = pids_of(after);
  survivors.erase(victim);
  for (const pid_t pid : survivors) EXPECT_THAT(now, Contains(pid)) << "was restarted";
  EXPECT_THAT(now, Not(Contains(victim)));
  stop_and_expect_equal(*training, "a");
  EXPECT_THAT(causes("a"), ElementsAre("start", "killed", "join"));
}

TEST_F(Elastic, ThreeWorkersMayBecomeTwoAndFiveAndOneInOneRun) {
  auto training = start("a", {"-n", "3", "--steps", "1000000"});
  const json before = status_when("a", 3, 1);
  EXPECT_EQ(call({"resize", "a", "2"}).exit_code, kExitOk);
  const json two = status_when("a", 2, 2);
  EXPECT_EQ(call({"resize", "a", "5"}).exit_code, kExitOk);
  const json five = status_when("a", 5, 3);
  EXPECT_EQ(call({"leave", "a", "3"}).exit_code, kExitOk);
  const json four = status_when("a", 4, 4);
  EXPECT_EQ(call({"resize", "a", "1"}).exit_code, kExitOk);
  const json one = status_when("a", 1, 5);
  EXPECT_EQ(pid_of(one, 0), pid_of(before, 0)) << "an untouched worker was restarted";
  stop_and_expect_equal(*training, "a");
  EXPECT_THAT(causes("a"), AllOf(Contains("resize"), Contains("join"), Contains("leave"),
                                 Not(Contains("killed"))));
}

TEST_F(Elastic, WhatCannotBeAskedIsRefusedWithAReason) {
  EXPECT_EQ(call({"status", "a"}).exit_code, kExitConfig);
  auto training = start("a", {"-n", "1", "--steps", "1000000"});
  status_when("a", 1, 1);
  const auto last = call({"leave", "a", "0"});
  EXPECT_EQ(last.exit_code, kExitConfig);
  EXPECT_THAT(last.err, HasSubstr("cannot leave"));
  EXPECT_THAT(call({"leave", "a", "7"}).err, HasSubstr("no rank 7"));
  EXPECT_EQ(call({"resize", "a", "0"}).exit_code, kExitUsage);
  EXPECT_THAT(call({"status", "a"}).out, AllOf(HasSubstr("generation 1"), HasSubstr("rank 0")));
  const auto file = std::filesystem::status(run("a").coordinator()).permissions();
  EXPECT_EQ(file & (std::filesystem::perms::group_all | std::filesystem::perms::others_all),
            std::filesystem::perms::none)
      << "it holds the token";
  training->send(SIGINT);
  EXPECT_EQ(training->wait().exit_code, kExitSaved);
}

TEST_F(Elastic, APreemptedWorkerHandsOverAndIsReplaced) {
  auto training = start("a", {"-n", "2", "--steps", "1000000"});
  const json before = status_when("a", 2, 1);
  ::kill(pid_of(before, 1), SIGTERM);
  status_when("a", 2, 2);
  stop_and_expect_equal(*training, "a");
  EXPECT_THAT(causes("a"), AllOf(Contains("preempted"), Not(Contains("killed"))));
}

TEST_F(Elastic, TheCoordinatorMayDie) {
  auto training = start("a", {"-n", "2", "--steps", "1000000"});
  const json before = status_when("a", 2, 1);
  std::set<pid_t> workers = pids_of(before);
  // The processes of the run: yoke itself, its workers, and the coordinator.
  for (const pid_t pid : processes_with(marker_)) {
    const std::string stat = content_of("/proc/" + std::to_string(pid) + "/stat");
    const bool is_child = !workers.contains(pid) && stat.find("(yoke) ") != std::string::npos &&
                          parent_of(pid) == parent_of(*workers.begin());
    if (is_child) ::kill(pid, SIGKILL);
  }
  ASSERT_TRUE(eventually([&] { return status("a").is_object(); }));
  EXPECT_EQ(pids_of(status_when("a", 2, 1)), workers);
  // What it decides afterwards holds as before.
  ::kill(*workers.begin(), SIGKILL);
  status_when("a", 2, 2);
  stop_and_expect_equal(*training, "a");
  EXPECT_THAT(causes("a"), ElementsAre("start", "killed", "join"));
}

TEST_F(Elastic, TheSameExceptionTwiceAtOneStepIsTheLast) {
  // A fault fires once; written in another order it is another.
  const auto answer = train("a", {"-n", "2"},
                            {marker_,
                             "YOKE_FAULT=throw@rank=0,step=5,point=in_compute;"
                             "throw@step=5,rank=0,point=in_compute"});
  EXPECT_EQ(answer.exit_code, kExitDoNotRestart) << answer.err;
  EXPECT_THAT(answer.err, HasSubstr("the same failure twice at step 5"));
  EXPECT_EQ(read_json(run("a").failure())["kind"], "user_error");
  expect_nothing_is_left();
}

TEST_F(Elastic, WithoutProgressTheRunEnds) {
  const std::string at = ",step=5,point=in_compute";
  const auto answer =
      train("a", {"-n", "2", "--set", "elastic.restarts=1"},
            {marker_, "YOKE_FAULT=kill@rank=0" + at + ";kill@step=5,rank=0,point=in_compute"});
  EXPECT_EQ(answer.exit_code, kExitDoNotRestart) << answer.err;
  EXPECT_THAT(answer.err, HasSubstr("without a step between them"));
  expect_nothing_is_left();
}

}  // namespace
}  // namespace yoke::test
