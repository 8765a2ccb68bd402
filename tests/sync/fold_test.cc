// Additions, the identity and divisions on flat memory are those of a plain loop, bit by bit.

#include "yoke/sync/fold.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/random.h"

namespace yoke::sync {
namespace {

template <typename T>
struct Kind;
template <>
struct Kind<float> {
  static constexpr DType dtype = DType::kFloat32;
  using Bits = std::uint32_t;
};
template <>
struct Kind<double> {
  static constexpr DType dtype = DType::kFloat64;
  using Bits = std::uint64_t;
};

template <typename T>
std::vector<typename Kind<T>::Bits> bits_of(const std::vector<T>& values) {
  std::vector<typename Kind<T>::Bits> bits;
  for (const T value : values) bits.push_back(std::bit_cast<typename Kind<T>::Bits>(value));
  return bits;
}

template <typename T>
std::byte* raw(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

template <typename T>
class Fold : public testing::Test {};
using Kinds = testing::Types<float, double>;
TYPED_TEST_SUITE(Fold, Kinds);

TYPED_TEST(Fold, IsTheLoopForEveryLengthNumberAndAlias) {
  using T = TypeParam;
  for (const std::size_t count : {0, 1, 3, 17, 1023, 1024, 1025, 3001}) {
    for (std::size_t operands = 1; operands <= 7; ++operands) {
      std::vector<std::vector<T>> values(operands, std::vector<T>(count));
      for (std::size_t n = 0; n < operands; ++n) {
        RandomKey(9).with(n).normal(std::span<T>(values[n]));
        for (std::size_t i = 0; i < count; i += 3) values[n][i] *= static_cast<T>(1e6);
      }
      std::vector<T> want = values[0];
      for (std::size_t n = 1; n < operands; ++n) {
        for (std::size_t i = 0; i < count; ++i) want[i] = values[n][i] + want[i];
      }
      for (int alias = -1; alias < std::min<int>(2, static_cast<int>(operands)); ++alias) {
        auto copy = values;
        std::vector<T> fresh(count);
        std::vector<T>& out = alias < 0 ? fresh : copy[static_cast<std::size_t>(alias)];
        std::vector<const std::byte*> pointers;
        for (auto& operand : copy) pointers.push_back(raw(operand));
        fold(pointers, raw(out), count, Kind<T>::dtype);
        EXPECT_EQ(bits_of(out), bits_of(want)) << count << " elements, " << operands << " operands";
      }
    }
  }
}

// The identity is -0 and not +0: +0 would turn -0 into +0.
TYPED_TEST(Fold, AbsentChangesNoBitOfAnyValueFromEitherSide) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  std::vector<T> values{0,
                        static_cast<T>(-0.0),
                        Limits::denorm_min(),
                        -Limits::denorm_min(),
                        Limits::min() / 2,
                        Limits::min(),
                        1,
                        static_cast<T>(-1.5),
                        Limits::max(),
                        Limits::lowest(),
                        Limits::infinity(),
                        -Limits::infinity(),
                        Limits::quiet_NaN()};
  std::vector<T> absent(values.size()), sum(values.size());
  fill_absent(raw(absent), absent.size(), Kind<T>::dtype);
  for (const bool absent_first : {true, false}) {
    const std::vector<const std::byte*> operands{raw(absent_first ? absent : values),
                                                 raw(absent_first ? values : absent)};
    fold(operands, raw(sum), sum.size(), Kind<T>::dtype);
    EXPECT_EQ(bits_of(sum), bits_of(values));
  }
  const std::vector<const std::byte*> none{raw(absent), raw(absent)};
  fold(none, raw(sum), sum.size(), Kind<T>::dtype);
  EXPECT_EQ(bits_of(sum), bits_of(absent)) << "absent twice is absent";
}

TYPED_TEST(Fold, DivideIsOneDivisionAnElement) {
  using T = TypeParam;
  for (const double divisor : {1.0, 3.0, 7.0, 64.0, 1000003.0}) {
    std::vector<T> values(3001);
    RandomKey(4).normal(std::span<T>(values));
    values[5] = static_cast<T>(-0.0);
    std::vector<T> want = values;
    for (T& value : want) value = value / static_cast<T>(divisor);
    divide(raw(values), values.size(), divisor, Kind<T>::dtype);
    EXPECT_EQ(bits_of(values), bits_of(want)) << divisor;
  }
}

TYPED_TEST(Fold, MultiplyRoundsTheFactorFirst) {
  using T = TypeParam;
  for (const double factor : {1.0, 3.0, 1e-3, 16777217.0}) {
    std::vector<T> values(3001), product(3001);
    RandomKey(5).normal(std::span<T>(values));
    std::vector<T> want = values;
    for (T& value : want) value = value * static_cast<T>(factor);
    multiply(raw(values), factor, raw(product), values.size(), Kind<T>::dtype);
    EXPECT_EQ(bits_of(product), bits_of(want)) << factor;
  }
}

TEST(FoldOfOtherDtypes, IsABug) {
  std::vector<std::int64_t> values(4);
  const std::vector<const std::byte*> operands{raw(values), raw(values)};
  EXPECT_THROW(fold(operands, raw(values), 4, DType::kInt64), InternalError);
  EXPECT_THROW(divide(raw(values), 4, 2.0, DType::kFloat16), InternalError);
  EXPECT_THROW(multiply(raw(values), 2.0, raw(values), 4, DType::kInt8), InternalError);
}

}  // namespace
}  // namespace yoke::sync
