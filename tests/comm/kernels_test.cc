#include "yoke/comm/kernels.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/comm/sample.h"
#include "yoke/base/error.h"

namespace yoke::comm {
namespace {

using test::bytes_of;
using test::elements;

template <typename T>
class KernelsOf : public testing::Test {};
using Types = testing::Types<double, float, test::Float16, test::BFloat16, std::int8_t,
                             std::int32_t, std::int64_t, std::uint8_t>;
TYPED_TEST_SUITE(KernelsOf, Types);

template <typename T>
T expected(T a, T b, ReduceOp op) {
  const double x = test::value_of(a);
  const double y = test::value_of(b);
  switch (op) {
    case ReduceOp::kMax:
      return x > y ? a : b;
    case ReduceOp::kMin:
      return x < y ? a : b;
    case ReduceOp::kProduct:
      if constexpr (std::is_same_v<T, test::Float16>)
        return {float16_from_float(static_cast<float>(x * y))};
      else if constexpr (std::is_same_v<T, test::BFloat16>)
        return {bfloat16_from_float(static_cast<float>(x * y))};
      else if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
      else
        return a * b;
    default:
      return test::plus(a, b);
  }
}

TYPED_TEST(KernelsOf, CombineElementByElementAtAnyLengthAndPlace) {
  using T = TypeParam;
  // int64 does not fit the doubles of the oracle's comparisons.
  const std::uint64_t keep = std::is_same_v<T, std::int64_t> ? 0x7ffffffffff : ~std::uint64_t{0};
  for (const auto op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kProduct}) {
    for (const std::size_t count : {0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 1000}) {
      auto a = elements<T>(1, count);
      auto b = elements<T>(2, count);
      if constexpr (std::is_same_v<T, std::int64_t>) {
        for (auto* values : {&a, &b}) {
          for (T& value : *values)
            value = static_cast<T>(static_cast<std::uint64_t>(value) & keep) - (T{1} << 40);
        }
      }
      std::vector<T> want(count);
      for (std::size_t i = 0; i < count; ++i) want[i] = expected(a[i], b[i], op);
      const Combine combine = combine_of(test::Element<T>::dtype, op);
      std::vector<T> out(count);
      combine(bytes_of(out).data(), bytes_of(a).data(), bytes_of(b).data(), count);
      ASSERT_TRUE(test::same_bits(out, want)) << static_cast<int>(op) << " of " << count;
      auto left = a;
      combine(bytes_of(left).data(), bytes_of(left).data(), bytes_of(b).data(), count);
      ASSERT_TRUE(test::same_bits(left, want)) << "in the left operand";
      auto right = b;
      combine(bytes_of(right).data(), bytes_of(a).data(), bytes_of(right).data(), count);
      ASSERT_TRUE(test::same_bits(right, want)) << "in the right operand";
      if (count < 2) continue;
      // One element further: no vector is aligned.
      std::vector<T> shifted(count);
      combine(bytes_of(shifted).data() + sizeof(T), bytes_of(a).data() + sizeof(T),
              bytes_of(b).data() + sizeof(T), count - 1);
      want[0] = T{};
      ASSERT_TRUE(test::same_bits(shifted, want)) << "unaligned";
    }
  }
}

TYPED_TEST(KernelsOf, FourAtOnceIsTwoPairs) {
  using T = TypeParam;
  const CombineFour four = combine_four_of(test::Element<T>::dtype, ReduceOp::kSum);
  if (four == nullptr) return;
  const std::size_t count = 1003;
  std::vector<std::vector<T>> in;
  for (int i = 0; i < 4; ++i) in.push_back(elements<T>(i, count));
  std::vector<T> want(count), out(count);
  for (std::size_t i = 0; i < count; ++i) {
    want[i] = test::plus(test::plus(in[0][i], in[1][i]), test::plus(in[2][i], in[3][i]));
  }
  four(bytes_of(out).data(), bytes_of(in[0]).data(), bytes_of(in[1]).data(), bytes_of(in[2]).data(),
       bytes_of(in[3]).data(), count);
  EXPECT_TRUE(test::same_bits(out, want));
}

TEST(Kernels, NanSurvivesMaxAndMin) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto op : {ReduceOp::kMax, ReduceOp::kMin}) {
    for (const auto& [a, b] : {std::pair{nan, 1.0f}, std::pair{1.0f, nan}, std::pair{nan, nan}}) {
      std::vector<float> left(17, a), right(17, b), out(17);
      combine_of(DType::kFloat32, op)(bytes_of(out).data(), bytes_of(left).data(),
                                      bytes_of(right).data(), 17);
      for (const float value : out) EXPECT_NE(value, value);
    }
  }
}

TEST(Kernels, RefuseWhatHasNoArithmetic) {
  EXPECT_THROW(combine_of(DType::kBool, ReduceOp::kSum), ConfigError);
  for (const auto dtype : {DType::kInt8, DType::kInt32, DType::kInt64, DType::kUInt8}) {
    EXPECT_THROW(combine_of(dtype, ReduceOp::kMean), ConfigError);
  }
  EXPECT_NO_THROW(combine_of(DType::kBFloat16, ReduceOp::kMean));
}

TEST(Kernels, CopiesMoveEveryByteAndNoOther) {
  const auto from = test::elements<std::uint8_t>(1, 5000);
  for (const auto copy : {copy_bytes, stream_bytes}) {
    for (const std::size_t bytes : {0, 1, 7, 8, 15, 16, 17, 63, 64, 65, 1000, 4096, 4099}) {
      for (const std::size_t to_shift : {0, 1, 8, 15}) {
        for (const std::size_t from_shift : {0, 3, 16}) {
          std::vector<std::uint8_t> to(5000, 0xee), want(5000, 0xee);
          std::copy_n(from.begin() + from_shift, bytes, want.begin() + to_shift);
          copy(bytes_of(to).data() + to_shift, bytes_of(from).data() + from_shift, bytes);
          ASSERT_EQ(to, want) << bytes << " from " << from_shift << " to " << to_shift;
        }
      }
    }
  }
}

TEST(Kernels, DivideRoundsOnce) {
  std::vector<float> values = elements<float>(1, 100);
  const auto before = values;
  divide(bytes_of(values).data(), values.size(), DType::kFloat32, 3);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], before[i] / 3.0f);
  std::vector<test::BFloat16> half = elements<test::BFloat16>(1, 100);
  const auto half_before = half;
  divide(bytes_of(half).data(), half.size(), DType::kBFloat16, 7);
  for (std::size_t i = 0; i < half.size(); ++i) {
    EXPECT_EQ(half[i].bits, bfloat16_from_float(float_from_bfloat16(half_before[i].bits) / 7.0f));
  }
}

}  // namespace
}  // namespace yoke::comm
