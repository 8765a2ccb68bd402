// safetensors: Python's own package reads what yoke writes, and yoke what that writes; a damaged
// file is an error and never more.

#include "yoke/checkpoint/safetensors.h"

#include <gmock/gmock.h>

#include <cstdio>

#include "tests/checkpoint/sample.h"
#include "yoke/base/error.h"
#include "yoke/base/hash.h"

namespace yoke::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

nlohmann::json python(const std::string& command, const fs::path& file) {
  const std::string call = cat("'", YOKE_TEST_PYTHON, "' '", YOKE_WEIGHTS_FOLDER,
                               "/safetensors_by_python.py' ", command, " '", file.string(), "'");
  FILE* pipe = ::popen(call.c_str(), "r");
  std::string text;
  char buffer[4096];
  for (std::size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    text.append(buffer, got);
  if (::pclose(pipe) != 0) {
    throw Error(cat("failed: ", call,
                    "\nscripts/setup installs what it needs; -DYOKE_TEST_PYTHON names another."));
  }
  return nlohmann::json::parse(text);
}

nlohmann::json described(const tensor::NamedTensors& tensors) {
  auto result = nlohmann::json::object();
  for (const auto& [name, tensor] : tensors) {
    result[name] = {{"dtype", name_of(tensor.dtype)},
                    {"shape", tensor.shape},
                    {"sha256", sha256_hex(tensor.bytes)}};
  }
  return result;
}

class Safetensors : public testing::Test {
 protected:
  const TemporaryFolder temporary_;
  const fs::path file_ = temporary_.path() / "w.safetensors";
};

TEST_F(Safetensors, PythonReadsWhatYokeWrites) {
  const test::SampleState state(3, 9);
  tensor::NamedTensors tensors = state.snapshot.all();
  const std::array<std::byte, 3> odd{std::byte{1}, std::byte{0}, std::byte{1}};
  tensors["flags"] = {DType::kBool, {3}, odd};
  tensors["a name with \"quotes\" and ümläuts"] = {DType::kUInt8, {3}, odd};
  write_safetensors(file_, tensors, {{"step", "3"}, {"format", "pt"}});
  const auto found = python("hashes", file_);
  EXPECT_EQ(found["tensors"], described(tensors));
  EXPECT_EQ(found["metadata"], (nlohmann::json{{"step", "3"}, {"format", "pt"}}));
  // Each is aligned to its elements, from the start of the file on.
  const std::string content = read_file(file_);
  std::uint64_t header = 0;
  std::memcpy(&header, content.data(), sizeof header);
  EXPECT_EQ(header % 8, 0u);
  const auto json = nlohmann::json::parse(content.substr(8, header));
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(json[name]["data_offsets"][0].get<std::uint64_t>() % size_of(tensor.dtype), 0u);
  }
}

TEST_F(Safetensors, YokeReadsWhatPythonWrites) {
  const auto want = python("write", file_);
  const Weights weights = load_weights(file_);
  EXPECT_EQ(described(weights.tensors()), want["tensors"]);
  EXPECT_EQ(weights.metadata, (std::map<std::string, std::string>{{"who", "Python"}}));
  EXPECT_GE(weights.tensors().size(), 18u);
}

TEST_F(Safetensors, WhatIsReadIsWhatWasWritten) {
  const test::SampleState state(3, 9);
  write_safetensors(file_, state.snapshot.all(), {});
  write_safetensors(file_, state.snapshot.all(), {});
  EXPECT_EQ(described(load_weights(file_).tensors()), described(state.snapshot.all()));
  write_safetensors(file_, {}, {});
  EXPECT_TRUE(load_weights(file_).tensors().empty());
  EXPECT_EQ(std::distance(fs::directory_iterator(temporary_.path()), fs::directory_iterator()), 1);
}

std::string with_header(const std::string& header, std::size_t data) {
  const std::uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + header +
         std::string(data, '\1');
}

TEST_F(Safetensors, AWrongHeaderIsRefused) {
  const std::string good = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                           R"("b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})";
  test::put(file_, with_header(good, 4));
  EXPECT_EQ(load_weights(file_).tensors().size(), 2u);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  const std::vector<std::pair<std::string, std::string>> wrong{
      {with_header(good, 3), "behind the end"},
      {with_header(good, 5), "5 bytes of tensors; its header describes 4"},
      {with_header(changed("[2,4]", "[1,3]"), 3), "overlaps"},
      {with_header(changed("[2,4]", "[3,5]"), 5), "hole"},
      {with_header(changed("[2,4]", "[2,3]"), 3), "not what its shape needs"},
      {with_header(changed("[2,4]", "[2,-4]"), 4), "behind the end"},
      {with_header(changed("[2]", "[-2]"), 4), "not what its shape needs"},
      {with_header(changed("[2]", "[4611686018427387904,4]"), 4), "not what its shape needs"},
      {with_header(changed("U8", "F8_E4M3"), 4), "F8_E4M3, which yoke does not have"},
      {with_header(changed("\"dtype\"", "\"kind\""), 4), "not as safetensors says"},
      {with_header("{\"a\"", 4), "no header in JSON"},
      {std::string("\xff\xff\xff\xff\0\0\0\0{", 9), "claims a header of"},
      {std::string("\4\0\0\0\0\0\0\0{", 9), "claims a header of"}};
  for (const auto& [content, said] : wrong) {
    test::put(file_, content);
    try {
      load_weights(file_);
      ADD_FAILURE() << "was taken; it should have said: " << said;
    } catch (const CheckpointError& error) {
      EXPECT_THAT(error.what(), HasSubstr(said));
      EXPECT_THAT(error.what(), HasSubstr(file_.string()));
    }
  }
}

TEST_F(Safetensors, AnyDamageIsAnErrorOrHarmless) {
  const test::SampleState state(3, 9);
  write_safetensors(file_, state.snapshot.buffers, {{"step", "3"}});
  const std::string content = read_file(file_);
  for (std::size_t at = 0; at < content.size(); ++at) {
    std::string damaged = content;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
    for (const auto& text : {damaged, content.substr(0, at)}) {
      test::put(file_, text);
      try {
        load_weights(file_);
        EXPECT_EQ(text.size(), content.size()) << "cut off at " << at;
      } catch (const CheckpointError&) {
      }
    }
  }
}

}  // namespace
}  // namespace yoke::checkpoint
