// What a person reads who wrote the configuration wrongly.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/config_tree.h"
#include "yoke/base/error.h"

namespace yoke {
namespace {

using testing::HasSubstr;

class ConfigErrors : public testing::Test {
 protected:
  ConfigErrors() {
    tree_.add("seed", &integer_, "");
    tree_.add("train.micro_batch", &bounded_, "", {.least = 1, .most = 64});
    tree_.add("train.threads", &threads_, "", {.least = 1});
    tree_.add("optimizer.name", &choice_, "", {"sgd", "adam"});
    tree_.add("optimizer.lr", &number_, "", {.least = 0.0, .most = 10.0});
    tree_.add("data.path", &text_, "");
    tree_.add("data.drop_last", &flag_, "");
  }

  template <typename Action>
  static std::string error_of(const Action& action) {
    try {
      action();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  }
  std::string file(std::string_view text) {
    return error_of([&] { tree_.load_text(text, "run.toml"); });
  }
  std::string flag(std::string_view text) {
    return error_of([&] { tree_.set(text); });
  }
  std::string variable(const std::string& text) {
    return error_of([&] { tree_.load_environment({text}); });
  }

  std::int64_t integer_ = 1, bounded_ = 8, threads_ = 1;
  double number_ = 0.1;
  bool flag_ = false;
  std::string choice_ = "sgd", text_ = "file";
  ConfigTree tree_;
};

TEST_F(ConfigErrors, AnUnknownKeyHasItsPlaceAndItsNeighbour) {
  EXPECT_EQ(file("seed = 1\n[optimizer]\n  lrr = 0.1\n"),
            "run.toml:3:3: unknown key \"optimizer.lrr\"; did you mean \"optimizer.lr\"?");
  EXPECT_EQ(file("[optimiser]\nlr = 0.1\nname = \"sgd\"\n"),
            "run.toml:1:2: unknown key \"optimiser\"; did you mean \"optimizer\"?");
  EXPECT_EQ(file("lr = 0.1"), "run.toml:1:1: unknown key \"lr\"; did you mean \"optimizer.lr\"?");
  EXPECT_THAT(file("completely_else = 1"),
              HasSubstr("unknown key \"completely_else\". `yoke config show"));
  EXPECT_EQ(flag("optimizer.lt=1"),
            "--set: unknown key \"optimizer.lt\"; did you mean \"optimizer.lr\"?");
  EXPECT_EQ(
      variable("YOKE_OPTIMISER_LR=1"),
      "the environment variable YOKE_OPTIMISER_LR names no key of the configuration; did you mean "
      "YOKE_OPTIMIZER_LR?");
  EXPECT_THAT(variable("YOKE_UNHEARD_OF=1"), HasSubstr("YOKE_UNHEARD_OF names no key"));
}

TEST_F(ConfigErrors, AWrongValueHasItsPlaceAndWhatWasExpected) {
  EXPECT_EQ(file("seed = 1.5"), "run.toml:1:8: seed must be an integer, and is 1.5.");
  EXPECT_EQ(file("seed = \"1\""), "run.toml:1:8: seed must be an integer, and is \"1\".");
  EXPECT_EQ(file("seed = 1979-05-27"),
            "run.toml:1:8: seed must be an integer, and is a date or time.");
  EXPECT_EQ(file("seed = [1]"), "run.toml:1:8: seed must be an integer, and is an array.");
  EXPECT_EQ(file("train.micro_batch = 65"),
            "run.toml:1:21: train.micro_batch must be an integer from 1 to 64, and is 65.");
  EXPECT_EQ(file("train.threads = 0"),
            "run.toml:1:17: train.threads must be an integer of at least 1, and is 0.");
  EXPECT_EQ(file("optimizer.lr = -0.1"),
            "run.toml:1:16: optimizer.lr must be a number from 0.0 to 10.0, and is -0.1.");
  EXPECT_EQ(file("optimizer.lr = nan"),
            "run.toml:1:16: optimizer.lr must be a number from 0.0 to 10.0, and is not a number.");
  EXPECT_EQ(file("optimizer.lr = true"),
            "run.toml:1:16: optimizer.lr must be a number from 0.0 to 10.0, and is true.");
  EXPECT_EQ(file("data.drop_last = 1"),
            "run.toml:1:18: data.drop_last must be true or false, and is 1.");
  EXPECT_EQ(file("data.path = 3"), "run.toml:1:13: data.path must be text in quotes, and is 3.");
  EXPECT_EQ(file("optimizer.name = \"adma\""),
            "run.toml:1:18: optimizer.name must be one of \"sgd\", \"adam\", and is \"adma\". Did "
            "you mean "
            "\"adam\"?");
  EXPECT_EQ(flag("train.micro_batch=many"),
            "--set: train.micro_batch must be an integer from 1 to 64, and is \"many\".");
  EXPECT_EQ(
      variable("YOKE_TRAIN_MICRO_BATCH="),
      "YOKE_TRAIN_MICRO_BATCH: train.micro_batch must be an integer from 1 to 64, and is \"\".");
}

TEST_F(ConfigErrors, SectionsAndKeysAreNotMistakenForEachOther) {
  EXPECT_EQ(file("train = 5"),
            "run.toml:1:1: \"train\" is a section, written [train], and here is 5.");
  EXPECT_THAT(file("[[train]]\nmicro_batch = 1"), HasSubstr("is a section, written [train]"));
  EXPECT_THAT(file("[seed]\nx = 1"), HasSubstr("seed must be an integer, and is a section."));
  EXPECT_THAT(file("\"train.micro_batch\" = 5"), HasSubstr("unknown key"));
  EXPECT_THAT(file("\"\" = 5"), HasSubstr("unknown key \"\""));
  EXPECT_THAT(flag("train=5"), HasSubstr("\"train\" is a section; name the key too"));
}

TEST_F(ConfigErrors, AllErrorsOfAFileComeAtOnceInItsOrderAndNothingIsTaken) {
  EXPECT_EQ(file("zeed = 1\nseed = 5\n[train]\nmicro_batch = 0\n[optimizer]\nlr = \"x\"\nnaem = "
                 "\"sgd\"\n"),
            "run.toml:1:1: unknown key \"zeed\"; did you mean \"seed\"?\n"
            "run.toml:4:15: train.micro_batch must be an integer from 1 to 64, and is 0.\n"
            "run.toml:6:6: optimizer.lr must be a number from 0.0 to 10.0, and is \"x\".\n"
            "run.toml:7:1: unknown key \"optimizer.naem\"; did you mean \"optimizer.name\"?");
  EXPECT_EQ(integer_, 1) << "seed was right, but the file was not";
  const std::string both = error_of([&] {
    tree_.load_environment({"YOKE_SEED=x", "YOKE_DATA_PATH=new", "YOKE_TRAIN_THREADS=0"});
  });
  EXPECT_THAT(both, HasSubstr("YOKE_SEED"));
  EXPECT_THAT(both, HasSubstr("YOKE_TRAIN_THREADS"));
  EXPECT_EQ(text_, "file");
}

TEST_F(ConfigErrors, WhatIsNotTomlHasItsPlace) {
  EXPECT_THAT(file("seed = 1\ntrain.threads = = 2\n"),
              HasSubstr("run.toml:2:17: this is not TOML: "));
  EXPECT_THAT(file("seed = 1\nseed = 2\n"), HasSubstr("run.toml:2:"));
  EXPECT_THAT(file("data.path = \"\xff\""), HasSubstr("this is not TOML"));
  EXPECT_THAT(file(std::string("seed\0= 1", 8)), HasSubstr("this is not TOML"));
  EXPECT_THAT(file("seed = 9223372036854775808"), HasSubstr("this is not TOML"));
}

TEST_F(ConfigErrors, AFlagCannotSmuggleFurtherKeys) {
  EXPECT_THAT(flag("seed=1\nvalue2 = 3"),
              HasSubstr("seed must be an integer, and is \"1\\nvalue2 = 3\""));
  EXPECT_THAT(flag("seed=1\n[table]"), HasSubstr("seed must be"));
  EXPECT_THAT(flag("data.path=\"open"), HasSubstr("data.path must be text in quotes, and is"));
  EXPECT_THAT(flag("data.path=\xff\xfe"), HasSubstr("data.path must be"));
  EXPECT_EQ(flag("seed"), "--set wants section.key=value, and got \"seed\".");
  EXPECT_EQ(integer_, 1);
  EXPECT_EQ(text_, "file");
}

TEST_F(ConfigErrors, HugeAndDeepTextIsRefusedAndNotCrashedOn) {
  std::string deep = "[a";
  for (int i = 0; i < 200000; ++i) deep += ".a";
  EXPECT_THAT(file(deep + "]"), HasSubstr("too large for a configuration"));
  EXPECT_THAT(file(std::string(2 << 20, '#')), HasSubstr("too large for a configuration"));
  std::string fits = "[a";
  for (int i = 0; i < 9990; ++i) fits += ".a";
  EXPECT_THAT(file(fits + "]"), HasSubstr("unknown key \"a\""));
  EXPECT_THAT(file("x = " + std::string(100000, '[')), HasSubstr("this is not TOML"));
  EXPECT_LT(flag("data.drop_last=" + std::string(100000, 'x')).size(), 300u);
}

TEST_F(ConfigErrors, AStrongerOriginDoesNotHideAnError) {
  tree_.set("seed=5");
  EXPECT_THAT(file("seed = \"x\""), HasSubstr("seed must be an integer"));
  EXPECT_THAT(variable("YOKE_SEED=x"), HasSubstr("seed must be an integer"));
}

}  // namespace
}  // namespace yoke
