// Tensors start at units of 1,024 elements, and every way of cutting an arena gives each element to
// exactly one part.

#include "yoke/tensor/arena_layout.h"

#include <gtest/gtest.h>

#include <random>

#include "yoke/base/error.h"

namespace yoke::tensor {
namespace {

constexpr std::size_t kBlock = 1024;

ArenaLayout::Entry entry(std::size_t elements, DType dtype = DType::kFloat32) {
  ArenaLayout::Entry entry;
  entry.name = "t" + std::to_string(elements);
  entry.shape = {static_cast<std::int64_t>(elements)};
  entry.dtype = dtype;
  entry.elements = elements;
  return entry;
}

/// Sizes around the unit, empty ones too, and both dtypes.
std::vector<ArenaLayout> layouts() {
  std::vector<ArenaLayout> all{ArenaLayout(), ArenaLayout({entry(1)}), ArenaLayout({entry(0)}),
                               ArenaLayout({entry(1024), entry(1023), entry(1025)})};
  std::mt19937 random(7);
  for (int i = 0; i < 12; ++i) {
    std::vector<ArenaLayout::Entry> entries;
    for (std::size_t n = 1 + random() % 9; n > 0; --n) {
      const std::size_t elements[] = {0, 1, 1023, 1024, 1025, 2048, random() % 40000};
      const bool wide = i % 3 != 0 && random() % 2 == 0;
      entries.push_back(entry(elements[random() % 7], wide ? DType::kFloat64 : DType::kFloat32));
    }
    all.emplace_back(std::move(entries), i % 3 == 0 ? DType::kFloat32 : DType::kFloat64);
  }
  return all;
}

TEST(ArenaLayout, TensorsStartAtUnitsAndDoNotOverlap) {
  for (const ArenaLayout& layout : layouts()) {
    std::size_t end = 0, blocks = 0;
    for (const auto& entry : layout.entries()) {
      EXPECT_EQ(entry.offset % layout.unit_bytes(), 0u);
      EXPECT_EQ(entry.offset, end) << "no room is wasted";
      EXPECT_EQ(entry.first_block, blocks);
      EXPECT_EQ(entry.blocks(), (entry.elements + kBlock - 1) / kBlock);
      end = entry.offset +
            (entry.bytes() + layout.unit_bytes() - 1) / layout.unit_bytes() * layout.unit_bytes();
      blocks += entry.blocks();
    }
    EXPECT_EQ(layout.bytes(), end);
    EXPECT_EQ(layout.blocks(), blocks);
  }
}

TEST(ArenaLayout, TheUnitIs1024ElementsOfTheWidest) {
  EXPECT_EQ(ArenaLayout({entry(5)}, DType::kFloat32).unit_bytes(), 4 * kBlock);
  EXPECT_EQ(ArenaLayout({entry(5)}, DType::kFloat64).unit_bytes(), 8 * kBlock);
  EXPECT_EQ(ArenaLayout({entry(5)}).unit_bytes(), 8 * kBlock);
}

TEST(ArenaLayout, LayoutsThatBeginAlikeAgreeOnWhereThatLies) {
  const ArenaLayout one({entry(3000), entry(70, DType::kFloat64)});
  const ArenaLayout other({entry(3000), entry(70, DType::kFloat64), entry(9), entry(5000)});
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].offset, other[i].offset);
}

TEST(ArenaLayout, OtherDtypesAndWiderOnesAreRefused) {
  EXPECT_THROW(ArenaLayout({entry(4, DType::kInt64)}), InternalError);
  EXPECT_THROW(ArenaLayout({entry(4, DType::kFloat16)}), InternalError);
  EXPECT_THROW(ArenaLayout({entry(4, DType::kFloat64)}, DType::kFloat32), InternalError);
}

TEST(ArenaLayout, SlicesCoverTheArenaOnceAtUnitsAndEvenly) {
  for (const ArenaLayout& layout : layouts()) {
    for (int parts = 1; parts <= 40; ++parts) {
      std::size_t end = 0, least = layout.bytes(), most = 0;
      for (int part = 0; part < parts; ++part) {
        const ByteRange slice = layout.slice(part, parts);
        EXPECT_EQ(slice.first, end);
        EXPECT_EQ(slice.first % layout.unit_bytes(), 0u);
        end = slice.last;
        least = std::min(least, slice.last - slice.first);
        most = std::max(most, slice.last - slice.first);
      }
      EXPECT_EQ(end, layout.bytes());
      EXPECT_LE(most - least, layout.unit_bytes());
    }
  }
}

TEST(ArenaLayout, PiecesOfAllSlicesAreEveryElementOnceInWholeBlocks) {
  for (const ArenaLayout& layout : layouts()) {
    for (const int parts : {1, 2, 3, 5, 8, 17, 40}) {
      for (const std::size_t most : {kBlock, 3 * kBlock, 1024 * kBlock}) {
        std::vector<std::vector<int>> seen;
        for (const auto& entry : layout.entries()) seen.emplace_back(entry.elements);
        std::size_t last_place = 0;
        for (int part = 0; part < parts; ++part) {
          const ByteRange slice = layout.slice(part, parts);
          layout.for_each_piece(slice, most, [&](const ArenaLayout::Piece& piece) {
            const auto& entry = layout[piece.entry];
            const std::size_t place = entry.offset + piece.first * size_of(entry.dtype);
            EXPECT_GE(place, last_place) << "pieces come in the order of the arena";
            last_place = place;
            EXPECT_GE(place, slice.first);
            EXPECT_LE(place + piece.count * size_of(entry.dtype), slice.last);
            EXPECT_GT(piece.count, 0u);
            EXPECT_LE(piece.count, most);
            EXPECT_EQ(piece.first % kBlock, 0u) << "no block of a norm is split";
            EXPECT_TRUE(piece.count % kBlock == 0 || piece.first + piece.count == entry.elements);
            for (std::size_t i = 0; i < piece.count; ++i) ++seen[piece.entry][piece.first + i];
          });
        }
        for (const auto& counts : seen) {
          for (const int count : counts) ASSERT_EQ(count, 1);
        }
      }
    }
  }
}

}  // namespace
}  // namespace yoke::tensor
