// Design, section 2.6: the global norm depends neither on how the arena is cut nor on the order of
// tensors in it.

#include "yoke/sync/squares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "yoke/base/random.h"

namespace yoke::sync {
namespace {

using tensor::ArenaLayout;

ArenaLayout::Entry entry(const std::string& name, std::size_t elements, DType dtype) {
  ArenaLayout::Entry entry;
  entry.name = name;
  entry.dtype = dtype;
  entry.elements = elements;
  return entry;
}

std::vector<ArenaLayout::Entry> entries() {
  return {entry("m", 5000, DType::kFloat32), entry("b", 1, DType::kFloat64),
          entry("z", 0, DType::kFloat32),    entry("a", 70001, DType::kFloat32),
          entry("q", 3072, DType::kFloat64), entry("c", 1025, DType::kFloat32)};
}

/// Fills each tensor by its name, wherever it lies.
std::vector<std::byte> filled(const ArenaLayout& layout) {
  std::vector<std::byte> arena(layout.bytes());
  for (const auto& entry : layout.entries()) {
    std::byte* at = arena.data() + entry.offset;
    const RandomKey key = RandomKey(8).with(entry.name);
    if (entry.dtype == DType::kFloat64) {
      key.normal(std::span(reinterpret_cast<double*>(at), entry.elements));
    } else {
      key.normal(std::span(reinterpret_cast<float*>(at), entry.elements));
    }
  }
  return arena;
}

double norm(const ArenaLayout& layout, std::size_t tensors, int parts, std::size_t most) {
  const auto arena = filled(layout);
  std::vector<double> squares(layout.blocks());
  for (int part = 0; part < parts; ++part) {
    layout.for_each_piece(layout.slice(part, parts), most, [&](const ArenaLayout::Piece& piece) {
      piece_squares(layout[piece.entry], piece, arena.data(), squares);
    });
  }
  return global_norm(layout, tensors, squares);
}

TEST(GlobalNorm, IsTheSameForEveryWayOfCuttingTheArena) {
  const ArenaLayout layout(entries());
  const double whole = norm(layout, layout.size(), 1, 1 << 30);
  for (const int parts : {1, 2, 3, 5, 8, 13}) {
    for (const std::size_t most : {1024, 2048, 65536}) {
      EXPECT_EQ(std::bit_cast<std::uint64_t>(norm(layout, layout.size(), parts, most)),
                std::bit_cast<std::uint64_t>(whole))
          << parts << " parts, pieces of " << most;
    }
  }
  long double sum = 0;
  const auto arena = filled(layout);
  layout.for_each_piece(layout.slice(0, 1), 1024, [&](const ArenaLayout::Piece& piece) {
    const auto& entry = layout[piece.entry];
    for (std::size_t i = piece.first; i < piece.first + piece.count; ++i) {
      const std::byte* at = arena.data() + entry.offset;
      const long double value = entry.dtype == DType::kFloat64
                                    ? reinterpret_cast<const double*>(at)[i]
                                    : reinterpret_cast<const float*>(at)[i];
      sum += value * value;
    }
  });
  EXPECT_NEAR(whole, std::sqrt(static_cast<double>(sum)), 1e-12 * whole);
}

TEST(GlobalNorm, GoesOverTensorsInTheOrderOfTheirNames) {
  std::vector<ArenaLayout::Entry> many;
  for (std::size_t i = 0; i < 100; ++i)
    many.push_back(entry("t" + std::to_string(i), 1 + i * 7, DType::kFloat64));
  const ArenaLayout one(many);
  std::reverse(many.begin(), many.end());
  const ArenaLayout other(many);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(norm(one, one.size(), 3, 2048)),
            std::bit_cast<std::uint64_t>(norm(other, other.size(), 2, 1024)));
}

TEST(GlobalNorm, LeavesOutTheBuffersBehindTheParameters) {
  const ArenaLayout all(entries());
  auto fewer = entries();
  fewer.resize(4);
  const ArenaLayout parameters(fewer);
  EXPECT_EQ(norm(all, 4, 3, 2048), norm(parameters, 4, 2, 1024));
  EXPECT_EQ(global_norm(all, 0, {}), 0.0);
}

}  // namespace
}  // namespace yoke::sync
