// A checkpoint that was damaged is never taken: it is named and set aside, and the one before it
// serves (chaos case: truncated, flipped, missing, swapped, foreign, stale LATEST).

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/checkpoint/sample.h"
#include "tests/support/captured_stderr.h"
#include "yoke/base/error.h"
#include "yoke/checkpoint/manifest.h"
#include "yoke/checkpoint/recovery.h"
#include "yoke/checkpoint/run_id.h"

namespace yoke::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

void flip_bit(const fs::path& path, std::size_t at) {
  std::string content = read_file(path);
  content.at(at) = static_cast<char>(content[at] ^ 4);
  test::put(path, content);
}

void edit(const fs::path& manifest, const std::function<void(nlohmann::json&)>& change) {
  auto json = unseal(read_file(manifest), "here");
  change(json);
  test::put(manifest, seal(json));
}

struct Injury {
  std::string name;
  std::string said;  ///< what the error must say
  std::function<void(const fs::path& checkpoint, const RunFolder& folder)> apply;
};

void PrintTo(const Injury& injury, std::ostream* out) {
  *out << injury.name;
}

std::vector<Injury> injuries() {
  const std::string shard = "shard-0000.bin", manifest = kManifestName;
  return {{"FlippedFirstBitOfShard", shard,
           [=](const fs::path& root, const RunFolder&) { flip_bit(root / shard, 0); }},
          {"FlippedLastBitOfShard", shard,
           [=](const fs::path& root, const RunFolder&) {
             flip_bit(root / shard, fs::file_size(root / shard) - 1);
           }},
          {"TruncatedShard", shard,
           [=](const fs::path& root, const RunFolder&) {
             fs::resize_file(root / shard, fs::file_size(root / shard) - 1);
           }},
          {"GrownShard", shard,
           [=](const fs::path& root, const RunFolder&) {
             fs::resize_file(root / shard, fs::file_size(root / shard) + 1);
           }},
          {"MissingShard", shard,
           [=](const fs::path& root, const RunFolder&) { fs::remove(root / shard); }},
          {"EmptyManifest", manifest,
           [=](const fs::path& root, const RunFolder&) { test::put(root / manifest, ""); }},
          {"MissingManifest", manifest,
           [=](const fs::path& root, const RunFolder&) { fs::remove(root / manifest); }},
          {"HalfAManifest", manifest,
           [=](const fs::path& root, const RunFolder&) {
             fs::resize_file(root / manifest, fs::file_size(root / manifest) / 2);
           }},
          {"EditedManifest", "checksum",
           [=](const fs::path& root, const RunFolder&) {
             std::string text = read_file(root / manifest);
             text.replace(text.find("\"step\": 2"), 9, "\"step\": 3");
             test::put(root / manifest, text);
           }},
          {"ManifestOfAnotherStep", "is of step 1",
           [=](const fs::path& root, const RunFolder& folder) {
             fs::copy_file(folder.checkpoint(1) / manifest, root / manifest,
                           fs::copy_options::overwrite_existing);
           }},
          {"FolderOfAnotherStep", "is of step 1",
           [=](const fs::path& root, const RunFolder& folder) {
             fs::remove_all(root);
             fs::copy(folder.checkpoint(1), root, fs::copy_options::recursive);
           }},
          {"ShardOfAnotherStep", shard,
           [=](const fs::path& root, const RunFolder& folder) {
             fs::copy_file(folder.checkpoint(1) / shard, root / shard,
                           fs::copy_options::overwrite_existing);
           }},
          {"ShardOfAnotherRun", shard,
           [=](const fs::path& root, const RunFolder&) {
             const TemporaryFolder other;
             test::save(RunFolder(other.path()), 2, 30);
             fs::copy_file(RunFolder(other.path()).checkpoint(2) / shard, root / shard,
                           fs::copy_options::overwrite_existing);
           }},
          {"ManifestOfAnotherRun", "belongs to another run",
           [=](const fs::path& root, const RunFolder&) {
             const TemporaryFolder other;
             test::save(RunFolder(other.path()), 2, 20);
             fs::copy_file(RunFolder(other.path()).checkpoint(2) / manifest, root / manifest,
                           fs::copy_options::overwrite_existing);
           }},
          {"FolderOfAnotherRun", "belongs to another run",
           [=](const fs::path& root, const RunFolder&) {
             const TemporaryFolder other;
             test::save(RunFolder(other.path()), 2, 30);
             fs::remove_all(root);
             fs::copy(RunFolder(other.path()).checkpoint(2), root, fs::copy_options::recursive);
           }},
          {"FileOutsideOfTheFolder", "cannot be a file of a checkpoint",
           [=](const fs::path& root, const RunFolder&) {
             edit(root / manifest, [](nlohmann::json& json) {
               json["files"][0]["name"] = "../step-00000001/shard-0000.bin";
             });
           }},
          {"ImpossibleShape", "shape of",
           [=](const fs::path& root, const RunFolder&) {
             edit(root / manifest, [](nlohmann::json& json) {
               json["tensors"][0]["shape"] = {1LL << 40, 1LL << 40};
             });
           }},
          {"AFileWhereTheFolderWas", "step-00000002",
           [=](const fs::path& root, const RunFolder&) {
             fs::remove_all(root);
             test::put(root, "not a folder");
           }},
          {"AnotherSchema", "schema 99",
           [=](const fs::path& root, const RunFolder&) {
             edit(root / manifest, [](nlohmann::json& json) { json["schema"] = 99; });
           }},
          {"MissingField", "tensors",
           [=](const fs::path& root, const RunFolder&) {
             edit(root / manifest, [](nlohmann::json& json) { json.erase("tensors"); });
           }},
          {"UnknownDtype", "float3",
           [=](const fs::path& root, const RunFolder&) {
             edit(root / manifest,
                  [](nlohmann::json& json) { json["tensors"][0]["dtype"] = "float3"; });
           }},
          {"UnknownPart", "wheels/x", [=](const fs::path& root, const RunFolder&) {
             edit(root / manifest,
                  [](nlohmann::json& json) { json["tensors"][0]["name"] = "wheels/x"; });
           }}};
}

class DamagedCheckpoint : public testing::TestWithParam<Injury> {};

TEST_P(DamagedCheckpoint, IsNamedAndTheOneBeforeIsTaken) {
  const TemporaryFolder temporary;
  const RunFolder folder(temporary.path());
  test::save(folder, 1, 10);
  test::save(folder, 2, 20);
  GetParam().apply(folder.checkpoint(2), folder);
  try {
    Reader(folder, 2);
    FAIL() << "it was taken";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("step-00000002"));
    EXPECT_THAT(error.what(), HasSubstr(GetParam().said));
  }
  {
    const test::CapturedStderr log;
    EXPECT_EQ(newest_intact(folder), 1);
    EXPECT_THAT(log.text(), HasSubstr("step-00000002"));
    EXPECT_THAT(log.text(), HasSubstr("Trying the checkpoint before it"));
  }
  test::expect_is(Reader(folder, 1), 1, 10);
  // A run that goes on writes the step anew, whatever lies there.
  test::save(folder, 2, 21);
  test::expect_is(Reader(folder, newest_intact(folder)), 2, 21);
}

TEST_P(DamagedCheckpoint, IsSetAsideAndStaysThere) {
  const test::CapturedStderr log;
  const TemporaryFolder temporary;
  const RunFolder folder(temporary.path());
  test::save(folder, 1, 10);
  test::save(folder, 2, 20);
  GetParam().apply(folder.checkpoint(2), folder);
  const Search search = recover_newest(folder);
  EXPECT_EQ(search.step, 1);
  ASSERT_EQ(search.damaged.size(), 1u);
  EXPECT_EQ(search.damaged[0].step, 2);
  EXPECT_THAT(search.damaged[0].why, HasSubstr(GetParam().said));
  EXPECT_THAT(log.text(), HasSubstr("damaged-step-00000002 now; the run goes on from step 1."));
  EXPECT_THAT(log.text(), HasSubstr("LATEST named step-00000002; the newest intact"));
  EXPECT_EQ(read_file(folder.latest()), "step-00000001\n");
  EXPECT_THAT(test::listing(folder),
              testing::ElementsAre("LATEST", "damaged-step-00000002", "step-00000001"));
  // Nothing takes it and nothing removes it, however long the run goes on.
  for (int step = 2; step < 6; ++step) test::save(folder, step, 21, 1);
  remove_leftovers(folder);
  EXPECT_THAT(test::listing(folder),
              testing::ElementsAre("LATEST", "damaged-step-00000002", "step-00000005"));
  EXPECT_EQ(recover_newest(folder).step, 5);
}

INSTANTIATE_TEST_SUITE_P(Damages, DamagedCheckpoint, testing::ValuesIn(injuries()),
                         [](const auto& info) { return info.param.name; });

TEST(DamagedCheckpoints, AllOfThemAreAnErrorAndNeverAFreshStart) {
  const test::CapturedStderr log;
  const TemporaryFolder temporary;
  const RunFolder folder(temporary.path());
  test::save(folder, 1, 10);
  test::save(folder, 2, 20);
  for (const int step : {1, 2}) flip_bit(folder.checkpoint(step) / "shard-0000.bin", 17);
  try {
    newest_intact(folder);
    FAIL() << "a damaged one was taken, or none was missed";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("none of the 2 checkpoints"));
    EXPECT_THAT(error.what(), HasSubstr("--fresh"));
  }
  const auto before = test::listing(folder);
  EXPECT_THROW(recover_newest(folder), CheckpointError);
  EXPECT_EQ(test::listing(folder), before) << "there is nothing better to make room for";
}

TEST(DamagedCheckpoints, OnesThatWereSetAsideAreNoFreshStartEither) {
  const test::CapturedStderr log;
  const TemporaryFolder temporary;
  const RunFolder folder(temporary.path());
  test::save(folder, 1, 10);
  test::save(folder, 2, 20);
  flip_bit(folder.checkpoint(2) / "shard-0000.bin", 17);
  recover_newest(folder);
  fs::remove_all(folder.checkpoint(1));
  EXPECT_THROW(recover_newest(folder), CheckpointError);
  EXPECT_THROW(newest_intact(folder), CheckpointError);
}

TEST(DamagedCheckpoints, EachIsSetAsideUnderANameOfItsOwn) {
  const test::CapturedStderr log;
  const TemporaryFolder temporary;
  const RunFolder folder(temporary.path());
  test::save(folder, 1, 10);
  for (int time = 0; time < 3; ++time) {
    test::save(folder, 2, 20);
    flip_bit(folder.checkpoint(2) / "shard-0000.bin", 17);
    EXPECT_EQ(recover_newest(folder).step, 1);
  }
  EXPECT_THAT(test::listing(folder),
              testing::ElementsAre("LATEST", "damaged-step-00000002", "damaged-step-00000002.2",
                                   "damaged-step-00000002.3", "step-00000001"));
  EXPECT_EQ(set_aside_folders(folder).size(), 3u);
}

TEST(StaleLatest, IsMendedAndSaid) {
  for (const std::string stale : {"step-00000001\n", "step-00000099\n", "", "rubbish"}) {
    const test::CapturedStderr log;
    const TemporaryFolder temporary;
    const RunFolder folder(temporary.path());
    test::save(folder, 1, 10);
    test::save(folder, 2, 20);
    test::put(folder.latest(), stale);
    EXPECT_EQ(recover_newest(folder).step, 2);
    EXPECT_EQ(read_file(folder.latest()), "step-00000002\n");
    EXPECT_THAT(log.text(), HasSubstr("which it names now"));
    fs::remove(folder.latest());
    EXPECT_EQ(recover_newest(folder).step, 2);
    EXPECT_EQ(read_file(folder.latest()), "step-00000002\n");
  }
}

TEST(RunId, IsMadeOnceAndTakenFromTheCheckpointsIfItIsLost) {
  const test::CapturedStderr log;
  const TemporaryFolder temporary, other;
  const RunFolder folder(temporary.path());
  EXPECT_EQ(run_id_of(folder), std::nullopt);
  test::save(folder, 1, 10);
  const auto id = run_id_of(folder);
  ASSERT_TRUE(id);
  test::save(folder, 2, 20);
  EXPECT_EQ(run_id_of(folder), id);
  EXPECT_EQ(Reader(folder, 2).contents().run_id, *id);
  for (const std::string lost : {"", "0123", "ABCDEF00000000000000000000000000"}) {
    test::put(folder.run_id(), lost);
    EXPECT_EQ(recover_newest(folder).step, 2);
    EXPECT_EQ(run_id_of(folder), id);
  }
  // Without it nobody can tell which of two is the stranger.
  test::save(RunFolder(other.path()), 3, 30);
  fs::copy(RunFolder(other.path()).checkpoint(3), folder.checkpoint(3));
  fs::remove(folder.run_id());
  EXPECT_THROW(recover_newest(folder), CheckpointError);
}

TEST(DamagedCheckpoints, AFileThatCannotBeOpenedNowIsNoDamage) {
  const TemporaryFolder temporary;
  const RunFolder folder(temporary.path());
  test::save(folder, 1, 10);
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{3, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  EXPECT_THROW(Reader(folder, 1), IoError);
  EXPECT_THROW(recover_newest(folder), IoError) << "nor is there nothing to go on from";
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(recover_newest(folder).step, 1);
  EXPECT_THAT(set_aside_folders(folder), testing::IsEmpty());
}

}  // namespace
}  // namespace yoke::checkpoint
