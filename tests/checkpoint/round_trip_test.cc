// What is written is read back, byte by byte; old checkpoints go, and LATEST names the newest.

#include <gmock/gmock.h>

#include "tests/checkpoint/sample.h"
#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/checkpoint/manifest.h"

namespace yoke::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Checkpoint : public testing::Test {
 protected:
  const TemporaryFolder temporary_;
  const RunFolder folder_{temporary_.path() / "run"};
};

TEST_F(Checkpoint, EveryPartComesBack) {
  EXPECT_EQ(newest_intact(folder_), -1) << "no checkpoint at all is no error";
  test::save(folder_, 12, 3);
  const Reader reader(folder_, 12);
  test::expect_is(reader, 12, 3);
  const test::SampleState state(12, 3);
  const StateHashes before = hashes_of(state.snapshot), after = hashes_of(reader.snapshot());
  EXPECT_EQ(after.parameters_sha256, before.parameters_sha256);
  EXPECT_EQ(after.buffers_sha256, before.buffers_sha256);
  EXPECT_EQ(after.optimizer_sha256, before.optimizer_sha256);
  EXPECT_EQ(after.state_sha256, before.state_sha256);
  EXPECT_NE(after.parameters_sha256, after.optimizer_sha256);
}

TEST_F(Checkpoint, ATensorIsCopiedByNameIfItFits) {
  test::save(folder_, 1, 3);
  const Reader reader(folder_, 1);
  std::vector<double> statistics(11);
  reader.read("buffers/running", std::as_writable_bytes(std::span(statistics)));
  std::vector<double> want(11);
  RandomKey(5).normal(want);
  EXPECT_EQ(statistics, want);
  EXPECT_THROW(reader.read("buffers/running", std::as_writable_bytes(std::span(want).first(10))),
               CheckpointError);
  EXPECT_THROW(reader.read("buffers/other", {}), CheckpointError);
}

TEST_F(Checkpoint, OnlyTheLastAreKeptAndLatestNamesTheNewest) {
  for (int step = 1; step <= 4; ++step) test::save(folder_, step * 10, step, 2);
  EXPECT_THAT(test::listing(folder_), ElementsAre("LATEST", "step-00000030", "step-00000040"));
  EXPECT_EQ(read_file(folder_.latest()), "step-00000040\n");
  EXPECT_THAT(steps_present(folder_), ElementsAre(30, 40));
  test::save(folder_, 50, 5, 1);
  EXPECT_THAT(test::listing(folder_), ElementsAre("LATEST", "step-00000050"));
  test::expect_is(Reader(folder_, 50), 50, 5);
}

TEST_F(Checkpoint, AStepThatIsWrittenAgainIsReplaced) {
  test::save(folder_, 10, 1);
  test::save(folder_, 10, 2);
  test::expect_is(Reader(folder_, 10), 10, 2);
  EXPECT_THAT(test::listing(folder_), ElementsAre("LATEST", "step-00000010"));
}

TEST_F(Checkpoint, LeftoversAreRemovedAndNothingElse) {
  test::save(folder_, 10, 1);
  std::filesystem::create_directory(folder_.checkpoints() / "step-00000020.g3.tmp");
  test::put(folder_.checkpoints() / "step-00000020.g3.tmp" / "shard-0000.bin", "half");
  test::put(folder_.checkpoints() / ".LATEST.0123456789abcdef.yoke-tmp", "step-");
  test::put(folder_.checkpoints() / "notes.txt", "a user's own");
  EXPECT_EQ(newest_intact(folder_), 10);
  remove_leftovers(folder_);
  EXPECT_THAT(test::listing(folder_), ElementsAre("LATEST", "notes.txt", "step-00000010"));
  remove_leftovers(RunFolder(temporary_.path() / "never"));
}

/// A checkpoint of step 5 in two files, as a later version may cut it.
class TwoShards : public Checkpoint {
 protected:
  void write(const nlohmann::json& pieces) {
    std::filesystem::create_directories(folder_.checkpoint(5));
    nlohmann::json files = nlohmann::json::array();
    for (const auto& [name, values] : std::map<std::string, std::vector<float>>{
             {"shard-0000.bin", {4, 5, 77}}, {"shard-0001.bin", {88, 99, 0, 1, 2, 3}}}) {
      const auto bytes = std::as_bytes(std::span(values));
      test::put(folder_.checkpoint(5) / name,
                {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      files.push_back({{"name", name}, {"bytes", bytes.size()}, {"crc32c", crc32c(bytes)}});
    }
    const nlohmann::json manifest{{"schema", kManifestSchema},
                                  {"step", 5},
                                  {"run", nlohmann::json::object()},
                                  {"files", files},
                                  {"tensors",
                                   {{{"name", "parameters/w"},
                                     {"dtype", "float32"},
                                     {"shape", {2, 3}},
                                     {"pieces", pieces}}}}};
    test::put(folder_.checkpoint(5) / kManifestName, seal(manifest));
  }
  static nlohmann::json piece(const char* file, int offset, int first, int count) {
    return {{"file", file}, {"offset", offset}, {"first", first}, {"count", count}};
  }
};

TEST_F(TwoShards, PiecesAreAssembledByTheirRanges) {
  write({piece("shard-0001.bin", 8, 0, 4), piece("shard-0000.bin", 0, 4, 2)});
  const Reader reader(folder_, 5);
  std::vector<float> values(6);
  reader.read("parameters/w", std::as_writable_bytes(std::span(values)));
  EXPECT_THAT(values, ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_F(TwoShards, PiecesThatDoNotFitTogetherAreRefused) {
  const std::vector<nlohmann::json> wrong{
      {piece("shard-0001.bin", 8, 0, 4)},                                     // too few
      {piece("shard-0001.bin", 8, 0, 4), piece("shard-0000.bin", 0, 5, 1)},   // a hole
      {piece("shard-0001.bin", 8, 0, 4), piece("shard-0000.bin", 0, 3, 3)},   // twice
      {piece("shard-0001.bin", 8, 0, 4), piece("shard-0000.bin", 0, 4, 3)},   // too many
      {piece("shard-0001.bin", 8, 0, 4), piece("shard-0000.bin", 8, 4, 2)},   // behind the end
      {piece("shard-0001.bin", 8, 0, 4), piece("shard-0002.bin", 0, 4, 2)}};  // no such file
  for (const auto& pieces : wrong) {
    write(pieces);
    try {
      Reader(folder_, 5);
      ADD_FAILURE() << pieces << " was taken";
    } catch (const CheckpointError& error) {
      EXPECT_THAT(error.what(), HasSubstr("parameters/w"));
    }
  }
}

}  // namespace
}  // namespace yoke::checkpoint
