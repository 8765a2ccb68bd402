// A checkpoint that was damaged is never taken: it is named, and the one before it serves.

#include <gmock/gmock.h>

#include "tests/checkpoint/sample.h"
#include "tests/support/captured_stderr.h"
#include "yoke/base/error.h"
#include "yoke/checkpoint/manifest.h"

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

struct Damage {
  std::string name;
  std::string said;  ///< what the error must say
  std::function<void(const fs::path& checkpoint, const RunFolder& folder)> apply;
};

std::vector<Damage> damages() {
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

class DamagedCheckpoint : public testing::TestWithParam<Damage> {};

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

INSTANTIATE_TEST_SUITE_P(Damages, DamagedCheckpoint, testing::ValuesIn(damages()),
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
}

}  // namespace
}  // namespace yoke::checkpoint
