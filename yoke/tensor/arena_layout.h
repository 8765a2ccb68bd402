#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "yoke/base/dtype.h"

namespace yoke::tensor {

/// Bytes [first, last) of an arena.
struct ByteRange {
  std::size_t first = 0;
  std::size_t last = 0;
  bool empty() const { return first >= last; }
};

/// Where tensors lie in one flat piece of memory.
///
/// Every tensor starts at a multiple of 1,024 elements of the widest dtype there is (the unit), and
/// slices are cut at units: so no block of a norm and no vector loop is ever split (design,
/// section 2.7). The gaps stay zero.
class ArenaLayout {
 public:
  struct Entry {
    std::string name;
    std::vector<std::int64_t> shape;
    DType dtype = DType::kFloat32;
    std::size_t elements = 0;
    std::size_t offset = 0;  ///< bytes
    std::size_t first_block =
        0;  ///< number of its first block of 1,024 elements among those of all entries
    std::size_t bytes() const { return elements * size_of(dtype); }
    std::size_t blocks() const;
  };
  /// Elements first .. first + count - 1 of one entry.
  struct Piece {
    std::size_t entry;
    std::size_t first;
    std::size_t count;
  };

  ArenaLayout() = default;
  /// Places the entries in the order given; `offset` and `first_block` are set here. Only float32
  /// and float64, none wider than `widest`: layouts with the same first entries and the same
  /// `widest` agree on where those lie.
  explicit ArenaLayout(std::vector<Entry> entries, DType widest = DType::kFloat64);

  const std::vector<Entry>& entries() const { return entries_; }
  const Entry& operator[](std::size_t i) const { return entries_[i]; }
  std::size_t size() const { return entries_.size(); }
  std::size_t bytes() const { return bytes_; }  ///< a multiple of the unit
  std::size_t unit_bytes() const { return unit_; }
  std::size_t blocks() const { return blocks_; }

  /// Part `index` of `parts` of the arena, cut at units, as even as can be.
  ByteRange slice(int index, int parts) const;
  /// Calls `visit` for every piece of an entry that lies in `range` (cut at units), at most `most`
  /// elements each, in the order of the arena. `most` is a multiple of 1,024.
  void for_each_piece(ByteRange range, std::size_t most,
                      const std::function<void(const Piece&)>& visit) const;

 private:
  std::vector<Entry> entries_;
  std::size_t bytes_ = 0;
  std::size_t unit_ = 8192;
  std::size_t blocks_ = 0;
};

}  // namespace yoke::tensor
