#include "yoke/data/csv.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "files.h"

namespace yoke::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Csv : public DataFiles {
 protected:
  TrainAndTest loaded(std::string_view content, double scale = 1.0) {
    return load({.path = write("rows.csv", content), .hold_out = 0, .scale = scale}, "");
  }
  std::string refused(std::string_view content) {
    return refusal<DataError>({.path = write("rows.csv", content), .hold_out = 0});
  }
};

std::vector<float> floats(const at::Tensor& tensor) {
  auto flat = tensor.contiguous();
  return {flat.const_data_ptr<float>(), flat.const_data_ptr<float>() + flat.numel()};
}

std::vector<std::int64_t> integers(const at::Tensor& tensor) {
  auto flat = tensor.contiguous();
  return {flat.const_data_ptr<std::int64_t>(), flat.const_data_ptr<std::int64_t>() + flat.numel()};
}

TEST_F(Csv, ReadsRowsAndLabels) {
  auto sets = loaded("1,2.5,0\n-3e-1,4,2\n5,6,1\n", 2.0);
  EXPECT_EQ(sets.test, nullptr);
  EXPECT_EQ(sets.train->size(), 3);
  EXPECT_THAT(sets.train->shape().input, testing::ElementsAre(2));
  EXPECT_EQ(sets.train->shape().classes, 3);
  EXPECT_FALSE(sets.train->shape().tokens);
  std::vector<std::int64_t> order{2, 0, 1, 1};
  auto batch = sets.train->get(order);
  EXPECT_EQ(batch.weight, 4);
  EXPECT_EQ(batch.input.sizes(), (at::IntArrayRef{4, 2}));
  EXPECT_THAT(floats(batch.input), testing::ElementsAre(10, 12, 2, 5, -0.6f, 8, -0.6f, 8));
  EXPECT_THAT(integers(batch.target), testing::ElementsAre(1, 0, 2, 2));
}

TEST_F(Csv, TakesFilesAsPeopleWriteThem) {
  auto plain = loaded("1,2,0\n3,4,1\n").train->identity();
  EXPECT_EQ(loaded("1,2,0\r\n3,4,1\r\n").train->identity(), plain) << "CRLF";
  EXPECT_EQ(loaded("1,2,0\n3,4,1").train->identity(), plain) << "no last line end";
  EXPECT_EQ(loaded("a,b,label\n1,2,0\n3,4,1\n").train->identity(), plain) << "header";
  EXPECT_EQ(loaded("0,1,label\n1,2,0\n3,4,1\n").train->identity(), plain)
      << "header with numbered columns";
  EXPECT_EQ(loaded("\xef\xbb\xbf"
                   "1,2,0\n3,4,1\n")
                .train->identity(),
            plain)
      << "byte order mark";
  EXPECT_EQ(loaded("\n 1 ,\t+2, 0\n\n3.0,4e0,1.0\n\n").train->identity(), plain) << "blanks";
}

TEST_F(Csv, SaysWhereAndWhatIsWrong) {
  EXPECT_THAT(refused(""), AllOf(HasSubstr("rows.csv"), HasSubstr("no row of numbers")));
  EXPECT_THAT(refused("a,b\n"), HasSubstr("empty but for its header"));
  EXPECT_THAT(refused("1,2,0\n1,2,0,1\n"),
              HasSubstr("rows.csv:2: 3 fields expected, as in line 1, and 4 found"));
  EXPECT_THAT(refused("x,y,l\n1,0\n"), HasSubstr("rows.csv:2: 3 fields expected"));
  EXPECT_THAT(refused("1,2,0\n1,,1\n"),
              HasSubstr("rows.csv:2: column 2: a number expected, and \"\" found"));
  EXPECT_THAT(refused("1,2,0\n1,two,1\n"),
              HasSubstr("column 2: a number expected, and \"two\" found"));
  EXPECT_THAT(refused("1,nan,0\n1,2,1\n"), HasSubstr("rows.csv:1: column 2"));
  EXPECT_THAT(refused("1,2,0\n1,1e999,1\n"), HasSubstr("rows.csv:2: column 2"));
  EXPECT_THAT(refused("1,2,0\nx,y,l\n"), HasSubstr("rows.csv:2: column 1"))
      << "a header is the first line only";
  EXPECT_THAT(refused("x,y,l\nx,y,l\n"), HasSubstr("rows.csv:2: column 1"));
  EXPECT_THAT(refused("1,2,0\n1,2,-1\n"), HasSubstr("rows.csv:2: column 3: a label"));
  EXPECT_THAT(refused("1,2,0\n1,2,0.5\n"), HasSubstr("a label (an integer from 0 to 65535)"));
  EXPECT_THAT(refused("1,2,0\n1,2,65536\n"), HasSubstr("column 3: a label"));
  EXPECT_THAT(refused("1\n2\n"), HasSubstr("rows.csv:1: a row needs values and a label"));
  EXPECT_THAT(refused("1,7\n2,7\n"), HasSubstr("all 2 samples have the label 7"));
}

TEST_F(Csv, RefusesACutOffGzipFile) {
  auto whole = read_file(shipped("digits.csv.gz"));
  auto path = write("cut.csv.gz", std::string_view(whole).substr(0, whole.size() / 2));
  EXPECT_THAT(refusal<DataError>({.path = path}), HasSubstr("cut.csv.gz"));
}

TEST_F(Csv, TheShippedDigitsAreSplitAsTheReadmeSays) {
  auto sets = load({.path = shipped("digits.csv.gz"), .hold_out = 0.2}, "");
  EXPECT_EQ(sets.train->size(), 1438);
  EXPECT_EQ(sets.test->size(), 359);
  EXPECT_EQ(sets.train->shape().classes, 10);
  EXPECT_THAT(sets.test->shape().input, testing::ElementsAre(64));
}

/// Rows whose value is their number, so that a split can be followed.
std::string numbered_rows(int count) {
  std::string content;
  for (int row = 0; row < count; ++row) content += cat(row, ",", row % 3, "\n");
  return content;
}

std::multiset<float> rows_of(const Dataset& set) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(set.size()));
  std::iota(all.begin(), all.end(), 0);
  auto values = floats(set.get(all).input);
  return {values.begin(), values.end()};
}

TEST_F(Csv, TheHoldOutIsDrawnBySeedAndDisjoint) {
  auto path = write("numbered.csv", numbered_rows(100));
  auto split = [&](std::uint64_t seed) {
    return load({.path = path, .hold_out = 0.3, .hold_out_seed = seed}, "");
  };
  auto first = split(0), again = split(0), other = split(1);
  EXPECT_EQ(first.test->size(), 30);
  EXPECT_EQ(first.train->size(), 70);
  auto both = rows_of(*first.train);
  auto held = rows_of(*first.test);
  both.insert(held.begin(), held.end());
  EXPECT_EQ(both.size(), 100u);
  EXPECT_EQ(std::set<float>(both.begin(), both.end()).size(), 100u)
      << "each row once, in one of the two";
  EXPECT_EQ(first.train->identity(), again.train->identity());
  EXPECT_EQ(first.test->identity(), again.test->identity());
  EXPECT_NE(first.test->identity(), other.test->identity());
  EXPECT_GT(*held.rbegin() - *held.begin(), 50) << "drawn from the whole file, not from one end";
}

TEST_F(Csv, AHoldOutThatLeavesNothingIsRefused) {
  auto path = write("few.csv", numbered_rows(4));
  EXPECT_THAT(refusal<DataError>({.path = path, .hold_out = 0.1}),
              HasSubstr("data.hold_out of 0.1 leaves 4 of 4"));
  EXPECT_THAT(refusal<DataError>({.path = path, .hold_out = 0.9}), HasSubstr("leaves 0 of 4"));
  EXPECT_THAT(refusal<ConfigError>({.path = path, .hold_out = 1.0}), HasSubstr("data.hold_out"));
}

TEST_F(Csv, ATestFileMustFitTheTrainingFile) {
  auto train = write("train.csv", "1,2,0\n3,4,1\n");
  auto sets = load({.path = train, .test_path = write("test.csv", "5,6,1\n")}, "");
  EXPECT_EQ(sets.train->size(), 2);
  EXPECT_EQ(sets.test->size(), 1);
  EXPECT_EQ(sets.test->shape().classes, 2);
  EXPECT_THAT(
      refusal<DataError>({.path = train, .test_path = write("test.csv", "5,6,2\n")}),
      HasSubstr("test.csv: label 2 is out of range; the training set has the labels 0 to 1"));
  EXPECT_THAT(refusal<DataError>({.path = train, .test_path = write("test.csv", "5,1\n")}),
              HasSubstr("test.csv: a sample has 1 values, but 2"));
}

TEST_F(Csv, TheIdentityFollowsEveryPartOfTheContent) {
  std::set<std::string> identities;
  for (const char* content :
       {"1,2,0\n3,4,1\n", "1,2,1\n3,4,0\n", "1,2,0\n3,5,1\n", "3,4,1\n1,2,0\n", "1,0\n2,1\n"}) {
    identities.insert(loaded(content).train->identity());
  }
  identities.insert(loaded("1,2,0\n3,4,1\n", 0.5).train->identity());
  EXPECT_EQ(identities.size(), 6u);
  EXPECT_THAT(*identities.begin(), testing::MatchesRegex("[0-9a-f]{16}"));
}

}  // namespace
}  // namespace yoke::data
