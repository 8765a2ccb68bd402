#include <gmock/gmock.h>

#include "files.h"

namespace yoke::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Load : public DataFiles {};

TEST_F(Load, LooksBesideTheConfigurationAndAboveIt) {
  write("data/rows.csv", "1,0\n2,1\n");
  write("examples/deep/run.toml", "");
  DataOptions options{.path = "../data/rows.csv", .hold_out = 0};
  EXPECT_EQ(load(options, folder() + "/examples").train->size(), 2);
  options.path = "data/rows.csv";
  EXPECT_EQ(load(options, folder() + "/examples/deep").train->size(), 2);
}

TEST_F(Load, AMissingFileIsNamedWithThePlacesThatWereSearched) {
  EXPECT_THAT(refusal<DataError>({.path = "no/such.csv"}, folder()),
              AllOf(HasSubstr("data.path: there is no file no/such.csv"), HasSubstr(folder())));
  EXPECT_THAT(refusal<DataError>({.path = folder() + "/no.csv"}), HasSubstr("no.csv"));
  EXPECT_THAT(refusal<ConfigError>({}), HasSubstr("data.path is empty"));
}

TEST_F(Load, RefusesUnknownKindsAndKeysThatItWouldIgnore) {
  auto path = write("rows.csv", "1,0\n2,1\n");
  EXPECT_THAT(refusal<ConfigError>({.kind = "cvs", .path = path}),
              HasSubstr("There are csv, idx and text"));
  EXPECT_THAT(refusal<ConfigError>({.kind = "texts", .path = path}),
              HasSubstr("Did you mean \"text\"?"));
  EXPECT_THAT(refusal<ConfigError>({.path = path, .labels = path}),
              HasSubstr("data.labels has no meaning"));
  EXPECT_THAT(refusal<ConfigError>({.kind = "text", .path = path, .scale = 2}),
              HasSubstr("data.scale"));
  EXPECT_THAT(refusal<ConfigError>({.path = path, .scale = 0}), HasSubstr("data.scale"));
  EXPECT_THAT(refusal<ConfigError>({.path = path, .hold_out = -0.1}), HasSubstr("data.hold_out"));
}

TEST_F(Load, OnlyATextHasCharacters) {
  auto sets = load({.path = write("rows.csv", "1,0\n2,1\n"), .hold_out = 0}, "");
  EXPECT_THROW(sets.train->encode("a"), ConfigError);
  EXPECT_THROW(sets.train->decode({}), ConfigError);
  std::vector<std::int64_t> beyond{2};
  EXPECT_THROW(sets.train->get(beyond), InternalError);
}

}  // namespace
}  // namespace yoke::data
