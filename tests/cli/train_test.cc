// `yoke train` and the commands on its runs, as a user calls them: the real program on the digits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "tests/cli/train_folder.h"
#include "yoke/base/error.h"
#include "yoke/base/exit_code.h"
#include "yoke/base/hash.h"

namespace yoke::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST_F(Train, JsonIsTheReportAndNothingElse) {
  auto answer = train("a", {"-n", "2", "--json"});
  ASSERT_EQ(answer.exit_code, kExitOk) << answer.err;
  auto printed = json::parse(answer.out, nullptr, false);
  ASSERT_TRUE(printed.is_object()) << answer.out;
  EXPECT_EQ(printed, report("a"));
  EXPECT_EQ(printed["status"], "finished");
  EXPECT_EQ(printed["steps"], 12);
  for (const char* field : {"samples", "seconds", "samples_per_second", "metrics"}) {
    EXPECT_TRUE(printed.contains(field)) << field;
  }
  EXPECT_EQ(printed["state_sha256"].get<std::string>().size(), 64u);
}

TEST_F(Train, SaysBeforehandWhatWasDecidedAndAtTheEndWhatCameOut) {
  auto answer = train("a", {"--progress", "none"});
  ASSERT_EQ(answer.exit_code, kExitOk) << answer.err;
  EXPECT_THAT(answer.err,
              AllOf(HasSubstr("micro-batches"), HasSubstr("workers"), HasSubstr("seed")));
  EXPECT_THAT(answer.out, AllOf(HasSubstr("finished after 12 steps"), HasSubstr("test_accuracy"),
                                HasSubstr(report("a")["state_sha256"].get<std::string>()),
                                HasSubstr("yoke eval a")));
}

TEST_F(Train, NotesRanksAndKeepsALogOfEach) {
  ASSERT_EQ(train("a", {"-n", "2"}).exit_code, kExitOk);
  for (int rank : {0, 1}) {
    auto note = read_json(run("a").rank_file(rank));
    EXPECT_EQ(note["rank"], rank);
    EXPECT_EQ(note["generation"], 1);
    EXPECT_GT(note["pid"], 1);
    EXPECT_FALSE(note["host"].get<std::string>().empty());
    EXPECT_TRUE(std::filesystem::exists(run("a").log_out(rank)));
  }
  EXPECT_THAT(content_of(run("a").log_err(0)), HasSubstr("micro-batches"));
}

TEST_F(Train, ARunThatWasStoppedGoesOnToTheSameBits) {
  ASSERT_EQ(train("whole", {"-n", "1"}).exit_code, kExitOk);
  auto stopped = train("parts", {"-n", "2", "--stop-after", "5"});
  EXPECT_EQ(stopped.exit_code, kExitSaved) << stopped.err;
  EXPECT_THAT(stopped.out, HasSubstr("stopped after 5 steps"));
  EXPECT_EQ(report("parts")["status"], "stopped");
  EXPECT_EQ(train("parts", {"-n", "3"}).exit_code, kExitOk);
  EXPECT_EQ(report("parts")["state_sha256"], report("whole")["state_sha256"]);
}

TEST_F(Train, AFinishedRunShowsItsReportAgain) {
  ASSERT_EQ(train("a", {}).exit_code, kExitOk);
  auto before = content_of(run("a").report());
  auto answer = train("a", {"--json"});
  EXPECT_EQ(answer.exit_code, kExitOk);
  EXPECT_EQ(json::parse(answer.out), json::parse(before));
  EXPECT_EQ(content_of(run("a").report()), before);
}

TEST_F(Train, AKilledWorkerIsReportedAndTheSameCommandGoesOn) {
  ASSERT_EQ(train("whole", {}).exit_code, kExitOk);
  auto marker = "TRAIN_TEST=" + random_token();
  std::vector<std::string> environment = {marker,
                                          "YOKE_FAULT=kill@rank=1,step=7,point=before_reduce"};
  std::vector<std::string> flags = {
      "-n", "3", "--set", "train.checkpoint_every=4", "--set", "elastic.restarts=0"};
  auto answer = train("a", flags, environment);
  EXPECT_EQ(answer.exit_code, 128 + SIGKILL) << answer.err;
  EXPECT_THAT(answer.err, AllOf(HasSubstr("rank 1 failed first"), HasSubstr("killed by SIGKILL"),
                                HasSubstr("checkpoints/step-00000004"),
                                HasSubstr("train digits.toml --run a")));
  EXPECT_THAT(processes_with(marker), IsEmpty());
  auto failure = read_json(run("a").failure());
  EXPECT_EQ(failure["rank"], 1);
  EXPECT_EQ(failure["signal"], "SIGKILL");
  EXPECT_EQ(failure["kind"], "killed");
  EXPECT_EQ(failure["exit_code"], 128 + SIGKILL);
  for (const char* field : {"host", "pid", "cause", "last_lines", "hint"}) {
    EXPECT_TRUE(failure.contains(field)) << field;
  }
  EXPECT_THAT(content_of(run("a").events()), HasSubstr("\"killed\""));

  EXPECT_EQ(train("a", flags, environment).exit_code, kExitOk) << "a fault fires once";
  EXPECT_EQ(report("a")["state_sha256"], report("whole")["state_sha256"]);
  EXPECT_FALSE(std::filesystem::exists(run("a").failure()));
}

TEST_F(Train, ASecondTrainingInTheSameFolderIsRefusedAndSigtermSavesTheFirst) {
  auto marker = "TRAIN_TEST=" + random_token();
  Call first({"train", "digits.toml", "--run", "a", "-n", "2", "--steps", "1000000"},
             here({marker}));
  ASSERT_TRUE(trains("a"));
  auto second = train("a", {"--steps", "1000000"});
  EXPECT_EQ(second.exit_code, kExitIo);
  EXPECT_THAT(second.err, AllOf(HasSubstr("process "), HasSubstr("is training in runs/a")));
  first.send(SIGTERM);
  auto answer = first.wait();
  EXPECT_EQ(answer.exit_code, kExitSaved) << answer.err;
  EXPECT_EQ(report("a")["status"], "stopped");
  EXPECT_GT(report("a")["steps"], 0);
  EXPECT_TRUE(std::filesystem::exists(run("a").latest()));
  EXPECT_THAT(processes_with(marker), IsEmpty());
}

TEST_F(Train, OtherDataThanBeforeIsBadData) {
  ASSERT_EQ(train("a", {"--stop-after", "2"}).exit_code, kExitSaved);
  auto rows = lines_of(read_gzip_or_plain(kData));
  rows.pop_back();
  std::string fewer;
  for (const auto& row : rows) fewer += row + '\n';
  write_file_atomically(folder_.path() / "fewer.csv", fewer);
  write_run("fewer.csv");
  auto answer = train("a", {});
  EXPECT_EQ(answer.exit_code, kExitData) << answer.err;
  EXPECT_THAT(answer.err, HasSubstr("other data"));
}

TEST_F(Train, AWarmUpBeyondTheEndIsFoundBeforeAnythingIsMadeOrSetAside) {
  ASSERT_EQ(train("a", {"--stop-after", "2"}).exit_code, kExitSaved);
  auto before = content_of(run("a").config());
  for (const std::string length : {"train.steps=12", "train.epochs=1"}) {
    std::vector<std::string> flags = {"--set", "train.steps=0", "--set",
                                      length,  "--set",         "schedule.warmup=100"};
    flags.push_back("--fresh");
    auto answer = train("a", flags);
    EXPECT_EQ(answer.exit_code, kExitConfig);
    EXPECT_THAT(answer.err, HasSubstr("schedule.warmup is 100 steps"));
    EXPECT_EQ(content_of(run("a").config()), before) << "the old run lies where it lay";
    flags.pop_back();
    EXPECT_EQ(train("b", flags).exit_code, kExitConfig);
    EXPECT_FALSE(std::filesystem::exists(run("b").rank_file(0))) << "no worker was started";
  }
  EXPECT_EQ(train("b", {}).exit_code, kExitOk) << "a run without a step is not bound to its plan";
}

TEST_F(Train, ABatchBeyondTheDataIsSaid) {
  for (const char* flag : {"--dry-run", "--json"}) {
    auto answer = train("a", {flag, "--set", "train.batch=5000", "--steps", "1"});
    EXPECT_EQ(answer.exit_code, kExitOk) << answer.err;
    EXPECT_THAT(answer.out + answer.err, HasSubstr("train.batch is 5000; the data has no more"));
  }
}

TEST_F(Train, DryRunShowsThePlanAndMakesNothing) {
  auto answer = train("a", {"--dry-run", "--mesh", "data=4"});
  EXPECT_EQ(answer.exit_code, kExitOk) << answer.err;
  EXPECT_THAT(answer.out, AllOf(HasSubstr("50 samples = 7 micro-batches of 8"),
                                HasSubstr("parameters"), HasSubstr("rank 3")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "runs"));
}

TEST_F(Train, AxesThatThisVersionLacksAreRefused) {
  auto answer = train("a", {"--mesh", "tensor=2"});
  EXPECT_EQ(answer.exit_code, kExitConfig);
  EXPECT_THAT(answer.err, HasSubstr("not supported by this version"));
}

TEST_F(Train, AnotherPlanIsRefusedUnlessTheOldRunIsSetAside) {
  ASSERT_EQ(train("a", {"--stop-after", "2"}).exit_code, kExitSaved);
  auto answer = train("a", {"--set", "train.seed=4"});
  EXPECT_EQ(answer.exit_code, kExitConfig);
  EXPECT_THAT(answer.err, HasSubstr("train.seed"));
  EXPECT_EQ(train("a", {"--set", "train.seed=4", "--fresh"}).exit_code, kExitOk);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "runs/a.old-1"));
  EXPECT_EQ(train("b", {"--fresh"}).exit_code, kExitOk);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "runs/b.old-1")) << "there was nothing";
}

TEST_F(Train, ADamagedConfigurationOfTheRunIsNamed) {
  ASSERT_EQ(train("a", {"--stop-after", "2"}).exit_code, kExitSaved);
  write_file_atomically(run("a").config(), "garbage = [");
  auto answer = train("a", {});
  EXPECT_EQ(answer.exit_code, kExitConfig);
  EXPECT_THAT(answer.err, AllOf(HasSubstr("a/config.resolved.toml"), HasSubstr("--fresh")));
}

TEST_F(Train, MissingDataIsTheUsersErrorAndIsToldToTorchrun) {
  write_run("no-such-file.csv");
  auto answer = train("a", {"-n", "2"}, {"TORCHELASTIC_ERROR_FILE=error.json"});
  EXPECT_THAT(answer.exit_code, testing::AnyOf(kExitData, kExitIo, kExitConfig));
  EXPECT_THAT(answer.err, HasSubstr("no-such-file.csv"));
  EXPECT_EQ(read_json(run("a").failure())["kind"], "user_error");
  EXPECT_TRUE(read_json(run("a").failure())["rank"].is_null()) << "no worker was started";
  EXPECT_FALSE(std::filesystem::exists(run("a").rank_file(0)));
  auto told = read_json(folder_.path() / "error.json");
  EXPECT_TRUE(told["message"]["message"].is_string());
  EXPECT_TRUE(told["message"]["extraInfo"].contains("timestamp"));
}

TEST_F(Train, RanksOfAForeignLauncherTrainTheSameBits) {
  ASSERT_EQ(train("whole", {}).exit_code, kExitOk);
  auto answer = call({"launch", "-n", "2", "--log-dir", "logs", "--", YOKE_PROGRAM, "train",
                      "digits.toml", "--run", "a", "--json"});
  EXPECT_EQ(answer.exit_code, kExitOk) << answer.err;
  EXPECT_EQ(report("a")["state_sha256"], report("whole")["state_sha256"]);
  EXPECT_EQ(read_json(folder_.path() / "logs/rank-0000.out"), report("a"));
  EXPECT_EQ(content_of(folder_.path() / "logs/rank-0001.out"), "");

  auto again =
      call({"launch", "-n", "2", "--", YOKE_PROGRAM, "train", "digits.toml", "--run", "a"});
  EXPECT_EQ(again.exit_code, kExitOk) << again.err;
  EXPECT_THAT(again.out, HasSubstr("finished after 12 steps"));
}

TEST_F(Train, RanksOfAForeignLauncherFailAsOne) {
  auto wrong = call({"launch", "-n", "2", "--", YOKE_PROGRAM, "train", "digits.toml", "-n", "3"});
  EXPECT_EQ(wrong.exit_code, kExitUsage);
  EXPECT_THAT(wrong.err, HasSubstr("-n says 3"));

  ASSERT_EQ(train("a", {"--stop-after", "1"}).exit_code, kExitSaved);
  auto plan = call({"launch", "-n", "2", "--", YOKE_PROGRAM, "train", "digits.toml", "--run", "a",
                    "--set", "train.seed=9"});
  EXPECT_EQ(plan.exit_code, kExitConfig) << "rank 0's error, not that of the rank that waited";
  EXPECT_THAT(plan.err, HasSubstr("train.seed"));
}

TEST_F(Train, EvalHashAndReplayReadARun) {
  auto answer = train("a", {"-n", "2", "--set", "train.checkpoint_every=6"});
  ASSERT_EQ(answer.exit_code, kExitOk) << answer.err;
  auto hashes = json::parse(call({"hash", "a", "--json"}).out, nullptr, false);
  EXPECT_EQ(hashes["step"], 12);
  EXPECT_EQ(hashes["state_sha256"], report("a")["state_sha256"]);
  for (const char* field : {"parameters_sha256", "buffers_sha256", "optimizer_sha256"}) {
    EXPECT_EQ(hashes[field].get<std::string>().size(), 64u) << field;
  }
  auto earlier = json::parse(call({"hash", "runs/a", "--step", "6", "--json"}).out, nullptr, false);
  EXPECT_EQ(earlier["step"], 6);
  EXPECT_NE(earlier["state_sha256"], hashes["state_sha256"]);

  auto evaluated = json::parse(call({"eval", "a", "--json"}).out, nullptr, false);
  EXPECT_EQ(evaluated["step"], 12);
  EXPECT_EQ(evaluated["metrics"]["loss"], report("a")["metrics"]["test_loss"]);
  EXPECT_EQ(evaluated["metrics"]["accuracy"], report("a")["metrics"]["test_accuracy"]);

  auto replay = [&](const std::string& v) {
    return json::parse(call({"replay", "a", "--step", "7", "--micro-batch", v, "--json"}).out,
                       nullptr, false);
  };
  auto last = replay("6");
  EXPECT_EQ(last["samples"], 2) << "50 samples are six micro-batches of 8 and one of 2";
  EXPECT_EQ(last, replay("6"));
  EXPECT_NE(last["gradient_sha256"], replay("5")["gradient_sha256"]);
}

TEST_F(Train, DataPathsAreRelativeToTheRunFileFromAnyFolder) {
  std::filesystem::copy_file(kData, folder_.path() / "copy.csv.gz");
  write_run("copy.csv.gz");
  std::filesystem::create_directory(folder_.path() / "elsewhere");
  CallOptions elsewhere{.folder = folder_.path() / "elsewhere"};
  auto answer = yoke({"train", "../digits.toml", "--steps", "2"}, elsewhere);
  EXPECT_EQ(answer.exit_code, kExitOk) << answer.err;
  EXPECT_EQ(yoke({"eval", "elsewhere/runs/digits"}, here()).exit_code, kExitOk);
  EXPECT_EQ(yoke({"eval", "digits"}, elsewhere).exit_code, kExitOk);
}

TEST_F(Train, PathsMayHoldAnything) {
  for (const std::string name : {"with space", "\xc3\xbc \xe2\x88\x91", "not \xff utf-8", "a\nb"}) {
    auto file = name + ".toml";
    std::filesystem::copy_file(folder_.path() / "digits.toml", folder_.path() / file);
    auto answer = call({"train", file, "-n", "2", "--steps", "3"});
    EXPECT_EQ(answer.exit_code, kExitOk) << answer.err;
    for (const char* command : {"eval", "hash"}) {
      EXPECT_EQ(call({command, name, "--json"}).exit_code, kExitOk) << command << ' ' << name;
    }
  }
}

TEST_F(Train, WhatForbidsToMakeTheFolderIsTheReasonThatIsGiven) {
  write_file_atomically(folder_.path() / "runs", "a file");
  auto answer = train("a", {});
  EXPECT_EQ(answer.exit_code, kExitIo);
  EXPECT_THAT(answer.err, AllOf(HasSubstr("Not a directory"), HasSubstr("--run")));
}

TEST_F(Train, ARunThatDoesNotExistIsAnsweredWithThoseThatDo) {
  ASSERT_EQ(train("alpha", {"--steps", "1"}).exit_code, kExitOk);
  auto answer = call({"eval", "alpah"});
  EXPECT_EQ(answer.exit_code, kExitUsage);
  EXPECT_THAT(answer.err,
              AllOf(HasSubstr("Did you mean alpha?"), HasSubstr("Runs in runs: alpha")));
}

}  // namespace
}  // namespace yoke::test
