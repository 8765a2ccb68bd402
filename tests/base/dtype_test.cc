#include "yoke/base/dtype.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/error.h"

namespace yoke {
namespace {

TEST(DType, HasTheSizeAndNameOfItsType) {
  struct Row {
    DType dtype;
    std::size_t size;
    std::string_view name;
  };
  for (const Row& row : std::initializer_list<Row>{{DType::kFloat64, sizeof(double), "float64"},
                                                   {DType::kFloat32, sizeof(float), "float32"},
                                                   {DType::kFloat16, 2, "float16"},
                                                   {DType::kBFloat16, 2, "bfloat16"},
                                                   {DType::kInt8, 1, "int8"},
                                                   {DType::kInt32, 4, "int32"},
                                                   {DType::kInt64, 8, "int64"},
                                                   {DType::kUInt8, 1, "uint8"},
                                                   {DType::kBool, 1, "bool"}}) {
    EXPECT_EQ(size_of(row.dtype), row.size) << row.name;
    EXPECT_EQ(name_of(row.dtype), row.name);
    EXPECT_EQ(dtype_from(row.name), row.dtype);
  }
}

TEST(DType, AnUnknownNameListsTheKnownOnes) {
  try {
    dtype_from("float8");
    FAIL() << "float8 is known";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("float64, float32, float16, bfloat16"));
  }
  EXPECT_THROW(dtype_from(""), ConfigError);
}

TEST(DType, ANumberOutOfAFrameIsChecked) {
  EXPECT_THROW(size_of(static_cast<DType>(9)), DataError);
  EXPECT_THROW(name_of(static_cast<DType>(255)), DataError);
}

}  // namespace
}  // namespace yoke
