#include "yoke/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"
#include "yoke/checkpoint/shape.h"

namespace yoke::checkpoint {

namespace {

constexpr std::uint64_t kMostHeader = 100'000'000;
constexpr const char* kMetadata = "__metadata__";

constexpr std::array<std::pair<DType, const char*>, 9> kNames{{{DType::kFloat64, "F64"},
                                                               {DType::kFloat32, "F32"},
                                                               {DType::kFloat16, "F16"},
                                                               {DType::kBFloat16, "BF16"},
                                                               {DType::kInt8, "I8"},
                                                               {DType::kInt32, "I32"},
                                                               {DType::kInt64, "I64"},
                                                               {DType::kUInt8, "U8"},
                                                               {DType::kBool, "BOOL"}}};

const char* name_in_file(DType dtype) {
  return std::ranges::find(kNames, dtype, &decltype(kNames)::value_type::first)->second;
}

DType dtype_in_file(const std::string& name, const std::string& tensor, const std::string& where) {
  for (const auto& [dtype, known] : kNames) {
    if (name == known) return dtype;
  }
  throw CheckpointError(cat(where, ": ", tensor, " is of dtype ", name,
                            ", which yoke does not have. Convert it to another and save again."));
}

struct Range {
  std::uint64_t begin = 0, end = 0;
  std::string tensor;
};

/// The tensors must fill the file from the header's end to its own, each byte once.
void require_filled(std::vector<Range> ranges, std::uint64_t bytes, const std::string& where) {
  std::ranges::sort(ranges, std::less(),
                    [](const Range& range) { return std::pair(range.begin, range.end); });
  std::uint64_t filled = 0;
  for (const auto& range : ranges) {
    if (range.begin != filled || range.end < range.begin || range.end > bytes) {
      throw CheckpointError(cat(where, ": ", range.tensor,
                                " leaves a hole, overlaps another, or lies behind the end."));
    }
    filled = range.end;
  }
  if (filled != bytes) {
    throw CheckpointError(
        cat(where, " has ", bytes, " bytes of tensors; its header describes ", filled, "."));
  }
}

nlohmann::json header_of(const InputFile& file) {
  const std::string where = file.path().string();
  std::uint64_t size = 0;
  file.read(0, std::as_writable_bytes(std::span(&size, 1)));
  if (size > kMostHeader || size > file.size() - sizeof size)
    throw CheckpointError(cat(where, " claims a header of ", size, " bytes: it is damaged."));
  std::string text(static_cast<std::size_t>(size), '\0');
  file.read(sizeof size, std::as_writable_bytes(std::span(text)));
  auto header = nlohmann::json::parse(text, nullptr, false);
  if (!text.starts_with('{') || !header.is_object())
    throw CheckpointError(cat(where, " has no header in JSON: it is damaged."));
  return header;
}

Weights read_by(const nlohmann::json& header, std::uint64_t start, const InputFile& file) {
  const std::string where = file.path().string();
  Weights weights;
  std::vector<Range> ranges;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadata) {
      weights.metadata = entry.get<std::map<std::string, std::string>>();
      continue;
    }
    const auto offsets = entry.at("data_offsets").get<std::array<std::uint64_t, 2>>();
    ranges.push_back({offsets[0], offsets[1], name});
  }
  require_filled(ranges, file.size() - start, where);
  for (const auto& range : ranges) {
    const auto& entry = header.at(range.tensor);
    const DType dtype = dtype_in_file(entry.at("dtype"), range.tensor, where);
    const auto shape = entry.at("shape").get<std::vector<std::int64_t>>();
    const auto elements = elements_of(shape);
    if (!elements || *elements * size_of(dtype) != range.end - range.begin) {
      throw CheckpointError(cat(where, ": ", range.tensor, " has ", range.end - range.begin,
                                " bytes, which is not what its shape needs."));
    }
    file.read(start + range.begin, weights.add(range.tensor, dtype, shape));
  }
  return weights;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const tensor::NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<std::pair<std::string, tensor::NamedBytes>> ordered(tensors.begin(), tensors.end());
  std::ranges::stable_sort(ordered, std::greater(),
                           [](const auto& one) { return size_of(one.second.dtype); });
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : ordered) {
    header[name] = {{"dtype", name_in_file(tensor.dtype)},
                    {"shape", tensor.shape},
                    {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = text.size();

  const std::filesystem::path temporary = path.string() + "." + random_token(16) + ".yoke-tmp";
  DurableFile file(temporary);
  file.write(std::as_bytes(std::span(&size, 1)));
  file.write(std::as_bytes(std::span(text)));
  for (const auto& [name, tensor] : ordered) file.write(tensor.bytes);
  file.commit();
  try {
    rename_durably(temporary, path);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw;
  }
}

Weights read_safetensors(const InputFile& file) {
  try {
    const auto header = header_of(file);
    std::uint64_t size = 0;
    file.read(0, std::as_writable_bytes(std::span(&size, 1)));
    return read_by(header, sizeof size + size, file);
  } catch (const nlohmann::json::exception& error) {
    throw CheckpointError(
        cat(file.path().string(), " has a header that is not as safetensors says: ", error.what()));
  }
}

}  // namespace yoke::checkpoint
