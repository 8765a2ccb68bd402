#include "yoke/comm/kernels.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "yoke/base/error.h"
#include "yoke/base/vector_clones.h"
#include "yoke/comm/half.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace yoke::comm {
namespace {

/// How one dtype is stored (Stored) and calculated with.
template <typename T>
struct Plain {
  using Stored = T;
  YOKE_LOOP static T load(T stored) { return stored; }
  YOKE_LOOP static T store(T value) { return value; }
};
struct Float16 {
  using Stored = std::uint16_t;
  YOKE_LOOP static float load(Stored stored) { return float_from_float16(stored); }
  YOKE_LOOP static Stored store(float value) { return float16_from_float(value); }
};
struct BFloat16 {
  using Stored = std::uint16_t;
  YOKE_LOOP static float load(Stored stored) { return float_from_bfloat16(stored); }
  YOKE_LOOP static Stored store(float value) { return bfloat16_from_float(value); }
};

/// Signed overflow is undefined, unsigned wraps: integers are added and multiplied as unsigned.
template <typename T>
using Modular = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                            std::type_identity<T>>::type;

struct Sum {
  template <typename T>
  YOKE_LOOP static T of(T a, T b) {
    return static_cast<T>(static_cast<Modular<T>>(a) + static_cast<Modular<T>>(b));
  }
};
struct Product {
  template <typename T>
  YOKE_LOOP static T of(T a, T b) {
    // Through 64 bits for integers: small unsigned types would be promoted to (signed) int.
    using Wide = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;
    return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
  }
};
struct Max {
  template <typename T>
  YOKE_LOOP static T of(T a, T b) {
    return a > b || a != a ? a : b;
  }
};
struct Min {
  template <typename T>
  YOKE_LOOP static T of(T a, T b) {
    return a < b || a != a ? a : b;
  }
};

// `ivdep`: out may be the same place as an operand, which a vector loop bears and the compiler
// cannot know.
template <typename Type, typename Op>
YOKE_LOOP void combine(std::byte* out, const std::byte* left, const std::byte* right,
                       std::size_t count) {
  using Stored = typename Type::Stored;
  auto* to = reinterpret_cast<Stored*>(out);
  const auto* a = reinterpret_cast<const Stored*>(left);
  const auto* b = reinterpret_cast<const Stored*>(right);
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i)
    to[i] = Type::store(Op::of(Type::load(a[i]), Type::load(b[i])));
}

template <typename T>
YOKE_LOOP void sum_four(std::byte* out, const std::byte* a, const std::byte* b, const std::byte* c,
                        const std::byte* d, std::size_t count) {
  auto* to = reinterpret_cast<T*>(out);
  const auto* pa = reinterpret_cast<const T*>(a);
  const auto* pb = reinterpret_cast<const T*>(b);
  const auto* pc = reinterpret_cast<const T*>(c);
  const auto* pd = reinterpret_cast<const T*>(d);
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) to[i] = (pa[i] + pb[i]) + (pc[i] + pd[i]);
}

template <typename Type>
YOKE_LOOP void divide_all(std::byte* data, std::size_t count, int divisor) {
  auto* values = reinterpret_cast<typename Type::Stored*>(data);
  using Value = decltype(Type::load(values[0]));
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = Type::store(Type::load(values[i]) / static_cast<Value>(divisor));
  }
}

#define YOKE_COMBINE(name, Type, Op)                                                         \
  YOKE_LEVEL_CLONES void name(std::byte* out, const std::byte* left, const std::byte* right, \
                              std::size_t count) {                                           \
    combine<Type, Op>(out, left, right, count);                                              \
  }
#define YOKE_KERNELS(suffix, Type)      \
  YOKE_COMBINE(sum_##suffix, Type, Sum) \
  YOKE_COMBINE(max_##suffix, Type, Max) \
  YOKE_COMBINE(min_##suffix, Type, Min) \
  YOKE_COMBINE(product_##suffix, Type, Product)

YOKE_KERNELS(float64, Plain<double>)
YOKE_KERNELS(float32, Plain<float>)
YOKE_KERNELS(float16, Float16)
YOKE_KERNELS(bfloat16, BFloat16)
YOKE_KERNELS(int8, Plain<std::int8_t>)
YOKE_KERNELS(int32, Plain<std::int32_t>)
YOKE_KERNELS(int64, Plain<std::int64_t>)
YOKE_KERNELS(uint8, Plain<std::uint8_t>)

#define YOKE_SUM_FOUR(name, T)                                                             \
  YOKE_LEVEL_CLONES void name(std::byte* out, const std::byte* a, const std::byte* b,      \
                              const std::byte* c, const std::byte* d, std::size_t count) { \
    sum_four<T>(out, a, b, c, d, count);                                                   \
  }
YOKE_SUM_FOUR(sum_four_float32, float)
YOKE_SUM_FOUR(sum_four_float64, double)

struct Kernels {
  Combine sum, max, min, product;
};
#define YOKE_TABLE(suffix)                                     \
  Kernels {                                                    \
    sum_##suffix, max_##suffix, min_##suffix, product_##suffix \
  }

bool is_floating(DType dtype) {
  return dtype == DType::kFloat64 || dtype == DType::kFloat32 || dtype == DType::kFloat16 ||
         dtype == DType::kBFloat16;
}

Kernels kernels_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return YOKE_TABLE(float64);
    case DType::kFloat32:
      return YOKE_TABLE(float32);
    case DType::kFloat16:
      return YOKE_TABLE(float16);
    case DType::kBFloat16:
      return YOKE_TABLE(bfloat16);
    case DType::kInt8:
      return YOKE_TABLE(int8);
    case DType::kInt32:
      return YOKE_TABLE(int32);
    case DType::kInt64:
      return YOKE_TABLE(int64);
    case DType::kUInt8:
      return YOKE_TABLE(uint8);
    case DType::kBool:
      break;
  }
  throw ConfigError(cat(yoke::name_of(dtype),
                        " has no arithmetic, so it cannot be reduced. Send it as uint8 with "
                        "max for \"any\" and min for \"all\"."));
}

/// At any address.
using Word [[gnu::aligned(1), gnu::may_alias]] = std::uint64_t;

// Compiled without the pass that finds a memcpy in it.
YOKE_LEVEL_CLONES void copy_words(Word* to, const Word* from, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
}

}  // namespace

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes == 0) return;
  const std::size_t words = bytes / sizeof(Word);
  copy_words(reinterpret_cast<Word*>(to), reinterpret_cast<const Word*>(from), words);
  std::memcpy(to + words * sizeof(Word), from + words * sizeof(Word), bytes % sizeof(Word));
}

void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__x86_64__) && !defined(YOKE_SANITIZED)
  constexpr std::size_t kWidth = sizeof(__m128i);
  const std::size_t head =
      std::min(bytes, (kWidth - reinterpret_cast<std::uintptr_t>(to) % kWidth) % kWidth);
  copy_bytes(to, from, head);
  const std::size_t wide = (bytes - head) / kWidth;
  auto* out = reinterpret_cast<__m128i*>(to + head);
  const auto* in = reinterpret_cast<const __m128i*>(from + head);
  for (std::size_t i = 0; i < wide; ++i) _mm_stream_si128(out + i, _mm_loadu_si128(in + i));
  const std::size_t done = head + wide * kWidth;
  copy_bytes(to + done, from + done, bytes - done);
  _mm_sfence();
#else
  copy_bytes(to, from, bytes);
#endif
}

Combine combine_of(DType dtype, ReduceOp op) {
  const Kernels kernels = kernels_of(dtype);
  switch (op) {
    case ReduceOp::kMean:
      if (!is_floating(dtype)) {
        throw ConfigError(cat("the mean of ", yoke::name_of(dtype),
                              " would lose its fraction. Reduce with sum and "
                              "divide as you need it, or convert to a floating type first."));
      }
      return kernels.sum;
    case ReduceOp::kSum:
      return kernels.sum;
    case ReduceOp::kMax:
      return kernels.max;
    case ReduceOp::kMin:
      return kernels.min;
    case ReduceOp::kProduct:
      return kernels.product;
  }
  throw ConfigError(cat("there is no reduction number ", static_cast<int>(op), "."));
}

CombineFour combine_four_of(DType dtype, ReduceOp op) {
  if (op != ReduceOp::kSum && op != ReduceOp::kMean) return nullptr;
  if (dtype == DType::kFloat32) return sum_four_float32;
  if (dtype == DType::kFloat64) return sum_four_float64;
  return nullptr;
}

void divide(std::byte* data, std::size_t count, DType dtype, int divisor) {
  switch (dtype) {
    case DType::kFloat64:
      return divide_all<Plain<double>>(data, count, divisor);
    case DType::kFloat32:
      return divide_all<Plain<float>>(data, count, divisor);
    case DType::kFloat16:
      return divide_all<Float16>(data, count, divisor);
    case DType::kBFloat16:
      return divide_all<BFloat16>(data, count, divisor);
    default:
      break;
  }
  YOKE_ENSURE(false, "A mean of ", yoke::name_of(dtype), " was let through.");
}

}  // namespace yoke::comm
