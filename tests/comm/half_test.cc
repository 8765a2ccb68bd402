#include "yoke/comm/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/comm/sample.h"

namespace yoke::comm {
namespace {

/// The value of 16 bits by the definition of IEEE 754: sign, exponent of `exponent_bits`, mantissa.
double value_by_definition(unsigned bits, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = bits >> 15 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const double mantissa = bits & ((1u << mantissa_bits) - 1);
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign *
         std::ldexp(std::ldexp(1.0, mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

struct Format {
  int exponent_bits;
  float (*widen)(std::uint16_t);
  std::uint16_t (*narrow)(float);
};
constexpr Format kFloat16{5, float_from_float16, float16_from_float};
constexpr Format kBFloat16{8, float_from_bfloat16, bfloat16_from_float};

TEST(Half, EveryPatternHasTheValueOfItsDefinitionAndComesBack) {
  for (const Format& format : {kFloat16, kBFloat16}) {
    for (unsigned bits = 0; bits < 65536; ++bits) {
      const double expected = value_by_definition(bits, format.exponent_bits);
      const float wide = format.widen(static_cast<std::uint16_t>(bits));
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(wide)) << bits;
        ASSERT_TRUE(std::isnan(format.widen(format.narrow(wide)))) << bits;
        continue;
      }
      ASSERT_EQ(wide, expected) << bits;
      ASSERT_EQ(std::signbit(wide), bits >> 15 == 1) << bits;
      ASSERT_EQ(format.narrow(wide), bits);
    }
  }
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
  for (const Format& format : {kFloat16, kBFloat16}) {
    const unsigned infinite =
        value_by_definition(0x7c00, format.exponent_bits) == std::numeric_limits<double>::infinity()
            ? 0x7c00
            : 0x7f80;
    for (unsigned bits = 0; bits + 1 < infinite; ++bits) {
      const double low = value_by_definition(bits, format.exponent_bits);
      const double high = value_by_definition(bits + 1, format.exponent_bits);
      const auto middle = static_cast<float>((low + high) / 2);  // exact: one bit more
      const unsigned even = bits % 2 == 0 ? bits : bits + 1;
      ASSERT_EQ(format.narrow(middle), even) << bits;
      ASSERT_EQ(format.narrow(std::nextafter(middle, 0.0f)), middle == 0 ? 0 : bits) << bits;
      ASSERT_EQ(format.narrow(std::nextafter(middle, INFINITY)), bits + 1) << bits;
      ASSERT_EQ(format.narrow(-middle), even | 0x8000) << bits;
    }
    // Half a step beyond the largest is infinite, and less than that is the largest.
    const double largest = value_by_definition(infinite - 1, format.exponent_bits);
    const double step = largest - value_by_definition(infinite - 2, format.exponent_bits);
    const auto border = static_cast<float>(largest + step / 2);
    EXPECT_EQ(format.narrow(border), infinite);
    EXPECT_EQ(format.narrow(std::nextafter(border, 0.0f)), infinite - 1);
    EXPECT_EQ(format.narrow(-INFINITY), infinite | 0x8000);
    EXPECT_EQ(format.narrow(std::numeric_limits<float>::denorm_min()), 0);
  }
}

}  // namespace
}  // namespace yoke::comm
