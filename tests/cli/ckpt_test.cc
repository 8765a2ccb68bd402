// yoke ckpt, as a user calls it, on a run of the digits.

#include <gmock/gmock.h>

#include <fstream>

#include "tests/cli/train_folder.h"
#include "yoke/base/exit_code.h"

namespace yoke::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class Ckpt : public Train {
 protected:
  void SetUp() override {
    Train::SetUp();
    const auto answer = train("a", {"--set", "train.checkpoint_every=4", "--set",
                                    "train.keep_last=3", "--progress", "none"});
    ASSERT_EQ(answer.exit_code, kExitOk) << answer.err;
  }
  void damage(std::int64_t step) const {
    const fs::path file = run("a").checkpoint(step) / "shard-0000.bin";
    std::string content = content_of(file);
    content[100] = static_cast<char>(content[100] ^ 1);
    std::ofstream(file, std::ios::binary) << content;
  }
  static std::vector<json> objects(const std::string& text) {
    std::vector<json> all;
    for (const auto& line : lines_of(text)) all.push_back(json::parse(line));
    return all;
  }
};

TEST_F(Ckpt, LsShowsWhatThereIsAndWhyItIsKept) {
  const auto answer = call({"ckpt", "ls", "a", "--json"});
  ASSERT_EQ(answer.exit_code, kExitOk) << answer.err;
  const auto all = objects(answer.out);
  ASSERT_EQ(all.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(all[i]["step"], 4 * (i + 1));
    EXPECT_EQ(all[i]["kept"], (json{"last"}));
    EXPECT_EQ(all[i]["generation"], 1);
    EXPECT_EQ(all[i]["intact"], true);
    EXPECT_EQ(all[i]["bytes"], fs::file_size(run("a").checkpoint(4) / "shard-0000.bin"));
  }
  EXPECT_THAT(call({"ckpt", "ls", "a"}).out, AllOf(HasSubstr("kept as"), HasSubstr("last")));
  EXPECT_EQ(call({"ckpt", "ls", "b"}).exit_code, kExitUsage);
}

TEST_F(Ckpt, VerifyReadsEverythingAndNamesTheDamagedFile) {
  auto answer = call({"ckpt", "verify", "a"});
  EXPECT_EQ(answer.exit_code, kExitOk) << answer.err;
  EXPECT_THAT(answer.out, AllOf(HasSubstr("step 4: intact"), HasSubstr("step 12: intact")));
  damage(8);
  answer = call({"ckpt", "verify", "a"});
  EXPECT_EQ(answer.exit_code, kExitIo);
  EXPECT_THAT(answer.out,
              AllOf(HasSubstr("step 8: damaged. "), HasSubstr("step-00000008/shard-0000.bin")));
  EXPECT_EQ(call({"ckpt", "verify", "a", "--step", "8"}).exit_code, kExitIo);
  EXPECT_EQ(call({"ckpt", "verify", "a", "--step", "12"}).exit_code, kExitOk);
  answer = call({"ckpt", "verify", "a", "--step", "5"});
  EXPECT_EQ(answer.exit_code, kExitIo);
  EXPECT_THAT(answer.err, HasSubstr("no checkpoint of step 5"));
  EXPECT_TRUE(fs::exists(run("a").checkpoint(8))) << "it only looks";
}

TEST_F(Ckpt, DiffNamesTheTensorsThatDiffer) {
  auto answer = call({"ckpt", "diff", "a", "4", "4"});
  EXPECT_EQ(answer.exit_code, kExitOk) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("the same bits in all"));
  answer = call({"ckpt", "diff", "a", "4", "8", "--json"});
  EXPECT_EQ(answer.exit_code, kExitFailed) << answer.err;
  bool found = false;
  for (const auto& one : objects(answer.out)) {
    if (one["name"] != "train/step") continue;
    found = true;
    EXPECT_EQ(one, (json{{"name", "train/step"},
                         {"kind", "values"},
                         {"elements", 1},
                         {"differing", 1},
                         {"max_abs", 4.0}}));
  }
  EXPECT_TRUE(found) << answer.out;
  // The same run on three workers has the same bits.
  ASSERT_EQ(train("b", {"-n", "3", "--progress", "none"}).exit_code, kExitOk);
  answer = call({"ckpt", "diff", "a", "12", "12", "--other", "b"});
  EXPECT_EQ(answer.exit_code, kExitOk) << answer.out;
}

TEST_F(Ckpt, ConvertWritesWeightsOfARunAndOfPyTorch) {
  auto answer = call({"ckpt", "convert", "a", "w.safetensors", "--step", "8"});
  ASSERT_EQ(answer.exit_code, kExitOk) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("of step 8"));
  const std::string content = content_of(folder_.path() / "w.safetensors");
  const auto header = json::parse(content.substr(8, content.find("}}", 8) - 8 + 2));
  EXPECT_EQ(header["__metadata__"]["step"], "8");
  EXPECT_EQ(header["__metadata__"]["state_sha256"],
            objects(call({"hash", "a", "--step", "8", "--json"}).out)[0]["state_sha256"]);
  // Again, and from the file itself: the same tensors.
  EXPECT_EQ(call({"ckpt", "convert", "a", "w.safetensors"}).exit_code, kExitUsage);
  EXPECT_EQ(call({"ckpt", "convert", "w.safetensors", "v.safetensors"}).exit_code, kExitOk);
  EXPECT_EQ(content_of(folder_.path() / "v.safetensors"), content);
  const std::string weights = YOKE_SOURCE_FOLDER "/tests/checkpoint/weights/";
  answer = call({"ckpt", "convert", weights + "net.pt", "net.safetensors"});
  EXPECT_EQ(answer.exit_code, kExitOk) << answer.err;
  EXPECT_THAT(content_of(folder_.path() / "net.safetensors"), HasSubstr("norm.running_mean"));
  answer = call({"ckpt", "convert", weights + "refused-class.pt", "x.safetensors"});
  EXPECT_EQ(answer.exit_code, kExitIo);
  EXPECT_THAT(answer.err, HasSubstr("__main__.Custom"));
  EXPECT_EQ(call({"ckpt", "convert", "a", "w.bin"}).exit_code, kExitUsage);
  EXPECT_EQ(call({"ckpt", "convert", "a", "no/such/w.safetensors"}).exit_code, kExitIo);
}

}  // namespace
}  // namespace yoke::test
