// The hash of named tensors is that of Python's hashlib over `name \0 dtype \0 shape \0 bytes`.

#include "yoke/tensor/named_hash.h"

#include <gtest/gtest.h>

#include <array>

namespace yoke::tensor {
namespace {

TEST(NamedHash, IsSha256OfNamesDtypesShapesAndBytesInTheOrderOfNames) {
  const std::array<float, 6> weight{1.0F, -0.0F, 0.5F, 2.0F, -3.25F, 1e-40F};
  const std::array<double, 2> bias{0.1, -1e300};
  const std::int64_t step = 7;
  NamedTensors tensors;
  tensors["fc.weight"] = {DType::kFloat32, {2, 3}, std::as_bytes(std::span(weight))};
  tensors["b/step"] = {DType::kInt64, {}, std::as_bytes(std::span(&step, 1))};
  tensors["fc.bias"] = {DType::kFloat64, {2}, std::as_bytes(std::span(bias))};
  EXPECT_EQ(sha256_of(tensors), "d0ef7de2c6a93a954c83bd488b16c092339fb43ba022d441d9d519a1b5b4c968");
}

TEST(NamedHash, KnowsBoolsEmptyTensorsAndNoTensorAtAll) {
  const std::array<bool, 3> flags{true, false, true};
  EXPECT_EQ(sha256_of({{"x", {DType::kBool, {3}, std::as_bytes(std::span(flags))}}}),
            "90b39cca2ad1f60cd56080726a3d9194b8d386c2bc7917662653342cb8664407");
  EXPECT_EQ(sha256_of({{"e", {DType::kFloat32, {0, 4}, {}}}}),
            "5df7340797faa56caec86301455f6133a6eec6bd9fdc5dcdc6241c686fa16e9d");
  EXPECT_EQ(sha256_of({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace yoke::tensor
