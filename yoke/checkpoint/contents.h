#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/dtype.h"
#include "yoke/base/run_folder.h"

namespace yoke::checkpoint {

/// `count` elements of a tensor, from element `first` on, as they lie in a file.
struct Piece {
  std::string file;
  std::uint64_t offset = 0, first = 0, count = 0;
};

struct TensorEntry {
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape;
  std::uint64_t elements = 0;
  std::vector<Piece> pieces;  ///< by `first`; together they are the whole tensor
  std::uint64_t bytes() const { return elements * size_of(dtype); }
};

struct FileEntry {
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;
};

/// What a manifest says, checked: every tensor is whole, and every piece lies in a file that is
/// listed.
struct Contents {
  std::int64_t step = 0;
  std::uint64_t generation = 0;
  int world_size = 0;
  std::string time;                       ///< of writing, ISO 8601
  std::string run_id;                     ///< empty in those written before there were ids
  std::optional<double> evaluation_loss;  ///< of this very state, if it was evaluated
  nlohmann::json run;                     ///< what write() was given as `extra`
  std::map<std::string, FileEntry> files;
  std::map<std::string, TensorEntry> tensors;  ///< by name with prefix: "parameters/fc.weight"
  std::string where;                           ///< path of the manifest, for messages

  /// Of all files.
  std::uint64_t bytes() const;
};

/// What a manifest (without its seal) says. Throws CheckpointError that begins with `where`.
Contents contents_from(const nlohmann::json& manifest, const std::string& where);

/// Reads the manifest of a step. Throws CheckpointError: missing, damaged, of another step, or of
/// another run than the one whose folder this is.
Contents contents_of(const RunFolder& folder, std::int64_t step);

}  // namespace yoke::checkpoint
