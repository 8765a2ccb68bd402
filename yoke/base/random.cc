#include "yoke/base/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/philox.h"

namespace yoke {
namespace {

using detail::Draw;
using detail::kWordsAtOnce;

// Says what kind of word went into a key, so that with(7) and with("\7...") never meet.
enum KeyWord : std::uint32_t { kSeed = 0, kNumber = 1, kText = 2 };

std::uint64_t joined(std::uint32_t low, std::uint32_t high) {
  return (std::uint64_t{high} << 32) | low;
}

std::uint64_t mixed(std::uint64_t key, std::uint64_t word, KeyWord kind) {
  const auto words = detail::philox_at(key, Draw::kKey, word, kind);
  return joined(words[0], words[1]);
}

float uniform_of(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

/// Calls write(out, words, count) for consecutive pieces of `out`; words[j] belongs to out[j].
template <typename Write>
void for_words(std::uint64_t key, std::span<float> out, std::uint64_t first, const Write& write) {
  std::array<std::uint32_t, kWordsAtOnce> words;
  while (!out.empty()) {
    const std::size_t skip = first % 4;
    const std::size_t count = std::min(out.size(), kWordsAtOnce - skip);
    detail::philox_words(key, Draw::kUniform, first / 4, words);
    write(out.data(), words.data() + skip, count);
    out = out.subspan(count);
    first += count;
  }
}

/// The normals of elements 2 * pair and 2 * pair + 1.
std::array<double, 2> normal_pair(std::uint64_t key, std::uint64_t pair) {
  const auto words = detail::philox_at(key, Draw::kNormal, pair);
  // 53 bits each; the first lies in (0, 1], where the logarithm is finite.
  const double a = static_cast<double>((joined(words[0], words[1]) >> 11) + 1) * 0x1p-53;
  const double b = static_cast<double>(joined(words[2], words[3]) >> 11) * 0x1p-53;
  const double radius = std::sqrt(-2.0 * std::log(a));
  const double angle = 2.0 * std::numbers::pi * b;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

template <typename Real>
void fill_normal(std::uint64_t key, std::span<Real> out, std::uint64_t first) {
  for (std::size_t j = 0; j < out.size();) {
    const std::uint64_t element = first + j;
    const auto pair = normal_pair(key, element / 2);
    out[j++] = static_cast<Real>(pair[element % 2]);
    if (element % 2 == 0 && j < out.size()) out[j++] = static_cast<Real>(pair[1]);
  }
}

}  // namespace

RandomKey::RandomKey(std::uint64_t seed) : value_(mixed(0, seed, kSeed)) {}

RandomKey RandomKey::with(std::uint64_t word) const {
  RandomKey key = *this;
  key.value_ = mixed(value_, word, kNumber);
  return key;
}

RandomKey RandomKey::with(std::string_view word) const {
  RandomKey key = *this;
  key.value_ = mixed(value_, xxh3(word), kText);
  return key;
}

std::uint64_t RandomKey::bits(std::uint64_t i) const {
  const auto words = detail::philox_at(value_, Draw::kBits, i / 2);
  return i % 2 == 0 ? joined(words[0], words[1]) : joined(words[2], words[3]);
}

float RandomKey::uniform(std::uint64_t i) const {
  return uniform_of(detail::philox_at(value_, Draw::kUniform, i / 4)[i % 4]);
}

void RandomKey::uniform(std::span<float> out, std::uint64_t first) const {
  for_words(value_, out, first, [](float* piece, const std::uint32_t* words, std::size_t count) {
    for (std::size_t j = 0; j < count; ++j) piece[j] = uniform_of(words[j]);
  });
}

void RandomKey::normal(std::span<float> out, std::uint64_t first) const {
  fill_normal(value_, out, first);
}

void RandomKey::normal(std::span<double> out, std::uint64_t first) const {
  fill_normal(value_, out, first);
}

void RandomKey::dropout_mask(std::span<float> out, float p, float scale,
                             std::uint64_t first) const {
  for_words(value_, out, first,
            [p, scale](float* piece, const std::uint32_t* words, std::size_t count) {
              for (std::size_t j = 0; j < count; ++j) {
                piece[j] = uniform_of(words[j]) >= p ? scale : 0.0f;
              }
            });
}

std::vector<std::int64_t> RandomKey::permutation(std::int64_t n) const {
  YOKE_ENSURE(n >= 0, "A permutation of ", n, " elements was asked for.");
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::uint64_t drawn = 0;
  for (std::uint64_t left = order.size(); left > 1; --left) {
    // Draws from the incomplete last round of 0 .. left-1 would favour small numbers.
    const std::uint64_t rest = (~std::uint64_t{0} % left + 1) % left;
    std::uint64_t draw = bits(drawn++);
    while (draw > ~std::uint64_t{0} - rest) draw = bits(drawn++);
    std::swap(order[left - 1], order[draw % left]);
  }
  return order;
}

}  // namespace yoke
