#include "yoke/base/dtype.h"

#include <array>

#include "yoke/base/error.h"

namespace yoke {
namespace {

struct Row {
  DType dtype;
  std::size_t size;
  std::string_view name;
};

// In the order of the values, so that a dtype is its own index.
constexpr std::array<Row, 9> kRows = {{
    {DType::kFloat64, 8, "float64"},
    {DType::kFloat32, 4, "float32"},
    {DType::kFloat16, 2, "float16"},
    {DType::kBFloat16, 2, "bfloat16"},
    {DType::kInt8, 1, "int8"},
    {DType::kInt32, 4, "int32"},
    {DType::kInt64, 8, "int64"},
    {DType::kUInt8, 1, "uint8"},
    {DType::kBool, 1, "bool"},
}};

const Row& row_of(DType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  // A dtype may have come out of a frame or a file, so the value is checked.
  if (index >= kRows.size()) {
    throw DataError(cat("there is no dtype number ", index, "; the highest is ", kRows.size() - 1,
                        ". The file or message is damaged, or comes from a newer yoke."));
  }
  return kRows[index];
}

}  // namespace

std::size_t size_of(DType dtype) {
  return row_of(dtype).size;
}

std::string_view name_of(DType dtype) {
  return row_of(dtype).name;
}

DType dtype_from(std::string_view name) {
  std::string names;
  for (const Row& row : kRows) {
    if (row.name == name) return row.dtype;
    names += names.empty() ? "" : ", ";
    names += row.name;
  }
  throw ConfigError(cat("unknown dtype \"", name, "\"; use one of: ", names, "."));
}

}  // namespace yoke
