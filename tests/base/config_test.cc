#include "yoke/base/config_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/random.h"

namespace yoke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A tree with a key of each type, and one whose name has the separator of variables in it.
struct Sample {
  Sample() {
    tree.add("seed", &seed, "where the random numbers start");
    tree.add("train.micro_batch", &micro_batch, "samples of a micro-batch",
             {.least = 1, .most = 4096});
    tree.add("train.drop_last", &drop_last, "drop a short batch");
    tree.add("optimizer.name", &optimizer, "the method", {"sgd", "adam", "adamw"});
    tree.add("optimizer.lr", &lr, "learning rate", {.least = 0.0});
    tree.add("data.path", &path, "the file");
  }

  std::int64_t seed = 1;
  std::int64_t micro_batch = 32;
  bool drop_last = false;
  std::string optimizer = "sgd";
  double lr = 0.1;
  std::string path = "data/digits.csv";
  ConfigTree tree;
};

std::string origin_of(const ConfigTree& tree, std::string_view key) {
  for (const auto& entry : tree.entries()) {
    if (entry.key == key) return entry.origin;
  }
  return "no such key";
}

TEST(Config, FillsItsTargets) {
  Sample sample;
  sample.tree.load_text(R"(
seed = -7
optimizer = { name = "adam", lr = 1 }
train.micro_batch = 1_024
[data]
path = 'C:\data'
)",
                        "run.toml");
  EXPECT_EQ(sample.seed, -7);
  EXPECT_EQ(sample.optimizer, "adam");
  EXPECT_EQ(sample.lr, 1.0) << "a whole number is a number too";
  EXPECT_EQ(sample.micro_batch, 1024);
  EXPECT_EQ(sample.path, "C:\\data");
  EXPECT_FALSE(sample.drop_last);
}

// Flag over environment over file over default, for all 24 orders of the calls.
TEST(Config, TheStrongestOriginWinsWhateverTheOrder) {
  std::vector<int> order = {0, 1, 2, 3};
  do {
    Sample sample;
    for (const int call : order) {
      if (call == 0)
        sample.tree.load_text("seed = 10\noptimizer.lr = 0.5\ntrain.micro_batch = 7", "f");
      if (call == 1) sample.tree.load_environment({"YOKE_SEED=20", "YOKE_OPTIMIZER_LR=0.25"});
      if (call == 2) sample.tree.set("seed=30");
      if (call == 3) sample.tree.load_text("optimizer.name = 'adamw'", "g");
    }
    EXPECT_EQ(sample.seed, 30);
    EXPECT_EQ(sample.lr, 0.25);
    EXPECT_EQ(sample.micro_batch, 7);
    EXPECT_EQ(sample.optimizer, "adamw");
    EXPECT_EQ(origin_of(sample.tree, "seed"), "--set");
    EXPECT_EQ(origin_of(sample.tree, "optimizer.lr"), "YOKE_OPTIMIZER_LR");
    EXPECT_EQ(origin_of(sample.tree, "train.micro_batch"), "f:3");
    EXPECT_EQ(origin_of(sample.tree, "data.path"), "default");
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Config, TheLaterOfTwoEqualOriginsWins) {
  Sample sample;
  sample.tree.load_text("seed = 1", "a.toml");
  sample.tree.load_text("seed = 2", "b.toml");
  EXPECT_EQ(sample.seed, 2);
  sample.tree.set("seed=3");
  sample.tree.set("seed=4", "--seed");
  EXPECT_EQ(sample.seed, 4);
  EXPECT_EQ(origin_of(sample.tree, "seed"), "--seed");
}

TEST(Config, VariablesNameTheDeclaredKeyAlone) {
  Sample sample;
  sample.tree.load_environment({"YOKE_TRAIN_MICRO_BATCH=8", "YOKE_DATA_PATH=a=b c", "HOME=/root",
                                "YOKE_FAULT=kill@rank=0", "YOKE_LOG=debug", "YOKE_TOKEN=x"});
  EXPECT_EQ(sample.micro_batch, 8);
  EXPECT_EQ(sample.path, "a=b c");
  std::int64_t other = 0;
  EXPECT_THROW(sample.tree.add("train_micro.batch", &other, "would share the variable"),
               InternalError);
  EXPECT_THROW(sample.tree.add("fault", &other, "reserved"), InternalError);
}

TEST(Config, TextNeedsNoQuotesOnTheCommandLineAndMayHaveThem) {
  Sample sample;
  for (const auto& [given, expected] : std::vector<std::pair<std::string, std::string>>{
           {"plain", "plain"},
           {"", ""},
           {"with space, # and = signs", "with space, # and = signs"},
           {"\"quoted\\n\"", "quoted\n"},
           {"'literal\\n'", "literal\\n"},
           {"two\nlines", "two\nlines"},
           {"true", "true"},
           {"12", "12"},
           {"inside \"quotes\"", "inside \"quotes\""}}) {
    sample.tree.set("data.path=" + given);
    EXPECT_EQ(sample.path, expected);
  }
}

TEST(Config, EveryDoubleSurvivesTheFile) {
  double number = 0;
  double read = 0;
  ConfigTree writer, reader;
  writer.add("a.number", &number, "");
  reader.add("a.number", &read, "");
  using Limits = std::numeric_limits<double>;
  std::vector<double> numbers = {0.0,
                                 -0.0,
                                 0.1,
                                 1e-3,
                                 3.0,
                                 1e22,
                                 Limits::max(),
                                 Limits::min(),
                                 5e-324,
                                 Limits::lowest(),
                                 Limits::infinity(),
                                 -Limits::infinity(),
                                 1.0 / 3,
                                 123456789012345678.0};
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const double any = std::bit_cast<double>(RandomKey(1).bits(i));
    if (!std::isnan(any)) numbers.push_back(any);
  }
  for (const double value : numbers) {
    number = value;
    reader.load_text(writer.to_toml(), "round trip");
    ASSERT_EQ(std::bit_cast<std::uint64_t>(read), std::bit_cast<std::uint64_t>(value)) << value;
  }
}

TEST(Config, EveryTextSurvivesTheFile) {
  std::string all;
  for (int letter = 0; letter < 128; ++letter) all += static_cast<char>(letter);
  for (const std::string& text : {all, std::string("\"\"\"'''\\"), std::string("line\r\nline\n"),
                                  std::string("Größe 漢字 🙂"), std::string(5000, '"'),
                                  std::string("# no comment = 1")}) {
    Sample writer, reader;
    writer.path = text;
    writer.seed = std::numeric_limits<std::int64_t>::min();
    for (const bool origin : {false, true}) {
      reader.tree.load_text(writer.tree.to_toml(origin), "round trip");
      EXPECT_EQ(reader.path, text);
      EXPECT_EQ(reader.seed, writer.seed);
    }
    EXPECT_EQ(reader.tree.to_toml(), writer.tree.to_toml());
  }
}

TEST(Config, TheTreeAsTomlSaysWhereEachValueCameFrom) {
  Sample sample;
  sample.tree.load_text("[optimizer]\nlr = 0.01\n", "runs/a\n[b].toml");
  sample.tree.set("train.micro_batch=64", "--micro-batch");
  EXPECT_EQ(sample.tree.to_toml(true), R"(seed = 1  # default

[train]
micro_batch = 64  # --micro-batch
drop_last = false  # default

[optimizer]
name = "sgd"  # default
lr = 0.01  # runs/a?[b].toml:2

[data]
path = "data/digits.csv"  # default
)");
}

TEST(Config, DifferencesAreThoseThatMatter) {
  Sample sample;
  sample.tree.set("optimizer.lr=0.2");
  sample.tree.set("data.path=elsewhere.csv");
  sample.tree.set("seed=5");
  const auto all = [](std::string_view) { return true; };
  const auto plan = [](std::string_view key) { return !key.starts_with("data."); };
  EXPECT_THAT(sample.tree.differences(sample.tree.to_toml(), all), IsEmpty());
  EXPECT_THAT(sample.tree.differences("seed = 5\n", all), ElementsAre("optimizer.lr", "data.path"));
  EXPECT_THAT(sample.tree.differences("seed = 5\n", plan), ElementsAre("optimizer.lr"));
  EXPECT_THAT(sample.tree.differences("optimizer.lr = 0.2", all), ElementsAre("seed", "data.path"));
  EXPECT_EQ(sample.lr, 0.2) << "comparing changes nothing";
  EXPECT_EQ(origin_of(sample.tree, "seed"), "--set");
  EXPECT_THROW(sample.tree.differences("sed = 5", all), ConfigError);
}

TEST(Config, ReadsAFileAndNamesAMissingOne) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "run.toml";
  Sample sample;
  write_file_atomically(path, "\xEF\xBB\xBFseed = 9 # with a byte order mark\r\n");
  sample.tree.load_file(path);
  EXPECT_EQ(sample.seed, 9);
  EXPECT_EQ(origin_of(sample.tree, "seed"), path.string() + ":1");
  try {
    sample.tree.load_file(folder.path() / "absent.toml");
    FAIL() << "a file that is not there was read";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("absent.toml"));
  }
}

TEST(Config, DeclarationsThatCannotBeRightAreBugs) {
  Sample sample;
  std::int64_t number = 5;
  std::string text = "x";
  EXPECT_THROW(sample.tree.add("seed", &number, "again"), InternalError);
  EXPECT_THROW(sample.tree.add("train", &number, "a section"), InternalError);
  EXPECT_THROW(sample.tree.add("seed.more", &number, "under a key"), InternalError);
  EXPECT_THROW(sample.tree.add("Upper", &number, ""), InternalError);
  EXPECT_THROW(sample.tree.add("a..b", &number, ""), InternalError);
  EXPECT_THROW(sample.tree.add("", &number, ""), InternalError);
  EXPECT_THROW(sample.tree.add("a.", &number, ""), InternalError);
  EXPECT_THROW(sample.tree.add("a.b", &number, "default out of range", {.most = 4}), InternalError);
  EXPECT_THROW(sample.tree.add("a.b", &text, "default not a choice", {"y"}), InternalError);
}

}  // namespace
}  // namespace yoke
