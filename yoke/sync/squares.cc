#include "yoke/sync/squares.h"

#include <cmath>
#include <map>
#include <vector>

#include "yoke/optim/norm.h"

namespace yoke::sync {

void piece_squares(const tensor::ArenaLayout::Entry& entry, const tensor::ArenaLayout::Piece& piece,
                   const std::byte* arena, std::span<double> squares) {
  const std::byte* at = arena + entry.offset + piece.first * size_of(entry.dtype);
  const std::size_t blocks = (piece.count + optim::kBlockElements - 1) / optim::kBlockElements;
  auto out = squares.subspan(entry.first_block + piece.first / optim::kBlockElements, blocks);
  if (entry.dtype == DType::kFloat64) {
    optim::block_squares(std::span(reinterpret_cast<const double*>(at), piece.count), out);
  } else {
    optim::block_squares(std::span(reinterpret_cast<const float*>(at), piece.count), out);
  }
}

double global_norm(const tensor::ArenaLayout& layout, std::size_t entries,
                   std::span<const double> squares) {
  std::map<std::string, double> by_name;
  for (std::size_t i = 0; i < entries; ++i) {
    by_name[layout[i].name] =
        optim::tree_sum(squares.subspan(layout[i].first_block, layout[i].blocks()));
  }
  std::vector<double> sums;
  for (const auto& [name, sum] : by_name) sums.push_back(sum);
  return std::sqrt(optim::tree_sum(sums));
}

}  // namespace yoke::sync
