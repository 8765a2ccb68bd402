// What Python's torch.save(model.state_dict()) wrote (tests/checkpoint/weights/make.py), read
// without Python; and what is refused.

#include "yoke/checkpoint/torch_file.h"

#include <gmock/gmock.h>

#include "tests/checkpoint/sample.h"
#include "yoke/base/error.h"
#include "yoke/base/hash.h"

namespace yoke::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kFolder = YOKE_WEIGHTS_FOLDER;

nlohmann::json expected() {
  return nlohmann::json::parse(read_file(kFolder / "expected.json"));
}

TEST(TorchFile, EveryTensorIsWhatPythonHas) {
  const auto files = expected();
  ASSERT_GE(files.size(), 5u);
  for (const auto& [name, tensors] : files.items()) {
    const Weights weights = load_weights(kFolder / name);
    EXPECT_EQ(weights.tensors().size(), tensors.size()) << name;
    for (const auto& [key, want] : tensors.items()) {
      ASSERT_TRUE(weights.tensors().contains(key)) << name << ": " << key;
      const auto& found = weights.tensors().at(key);
      EXPECT_EQ(name_of(found.dtype), want["dtype"].get<std::string>()) << name << ": " << key;
      EXPECT_EQ(found.shape, want["shape"].get<std::vector<std::int64_t>>()) << name << ": " << key;
      EXPECT_EQ(sha256_hex(found.bytes), want["sha256"].get<std::string>()) << name << ": " << key;
    }
  }
}

TEST(TorchFile, WhatIsNoStateDictIsRefusedWithAReason) {
  const std::vector<std::pair<std::string, std::string>> refused{
      {"refused-nested.pt", "\"model\" is a dictionary"},
      {"refused-number.pt", "\"epoch\" is no tensor"},
      {"refused-list.pt", "not a dictionary of tensors"},
      {"refused-module.pt", "it needs __main__.Net"},
      {"refused-class.pt", "it needs __main__.Custom"},
      {"refused-int16.pt", "it needs torch.ShortStorage"},
      {"refused-expanded.pt", "w reaches beyond its storage"},
      {"refused-legacy.pt", "torch.save() it again"},
      {"refused-script.pt", "is a TorchScript model"},
      {"make.py", "neither a safetensors file nor one that torch.save() wrote"},
      {"absent.pt", "No such file"},
      {"", "Is a directory"}};
  for (const auto& [name, said] : refused) {
    try {
      load_weights(kFolder / name);
      ADD_FAILURE() << name << " was taken";
    } catch (const CheckpointError& error) {
      EXPECT_THAT(error.what(), HasSubstr(said));
      EXPECT_THAT(error.what(), HasSubstr((kFolder / name).string()));
    }
  }
}

TEST(TorchFile, AnyDamageIsAnErrorOrHarmless) {
  const TemporaryFolder temporary;
  const fs::path file = temporary.path() / "damaged.pt";
  std::size_t taken = 0, tried = 0;
  for (const std::string name : {"net.pt", "net-protocol-4.pt"}) {
    const std::string content = read_file(kFolder / name);
    const auto want = expected()[name];
    for (std::size_t at = 0; at < content.size();
         at += 5) {  // 5 and 8 bits: every bit has its turn.
      std::string damaged = content;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
      for (const auto& text : {damaged, content.substr(0, at)}) {
        test::put(file, text);
        ++tried;
        try {
          const Weights weights = load_weights(file);
          ++taken;  // A flipped date, or padding. Then it must be all there.
          ASSERT_EQ(weights.tensors().size(), want.size()) << name << " at " << at;
          for (const auto& [key, tensor] : weights.tensors())
            EXPECT_EQ(sha256_hex(tensor.bytes), want[key]["sha256"].get<std::string>()) << at;
        } catch (const CheckpointError&) {
        }
      }
    }
  }
  EXPECT_LT(taken, tried / 2);
}

TEST(CopyWeights, FitsAllOrNothingAndSaysWhatDoesNot) {
  Weights weights;
  const auto fill = [&](const char* name, std::vector<std::int64_t> shape) {
    for (auto& byte : weights.add(name, DType::kFloat32, std::move(shape))) byte = std::byte{7};
  };
  fill("fc.weight", {2, 3});
  fill("fc.bias", {2});
  std::vector<float> weight(6), bias(2), other(4);
  const auto place = [](std::vector<float>& values, std::vector<std::int64_t> shape) {
    return Place{DType::kFloat32, std::move(shape), std::as_writable_bytes(std::span(values))};
  };
  try {
    copy_weights(weights, {{"fc.weight", place(weight, {3, 2})}, {"head", place(other, {4})}},
                 "w.pt");
    FAIL() << "it was taken";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("w.pt does not fit the model."));
    EXPECT_THAT(error.what(), HasSubstr("missing in the file: head"));
    EXPECT_THAT(error.what(), HasSubstr("not in the model: fc.bias"));
    EXPECT_THAT(error.what(),
                HasSubstr("fc.weight (float32 [2, 3], the model has float32 [3, 2])"));
  }
  EXPECT_EQ(weight, std::vector<float>(6)) << "nothing was copied";
  copy_weights(weights, {{"fc.weight", place(weight, {2, 3})}, {"fc.bias", place(bias, {2})}},
               "w.pt");
  const auto bytes = std::as_bytes(std::span(weight));
  EXPECT_TRUE(std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{7}; }));
  EXPECT_THROW(weights.add("fc.bias", DType::kFloat32, {1}), CheckpointError);
}

}  // namespace
}  // namespace yoke::checkpoint
