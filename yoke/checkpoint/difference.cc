#include "yoke/checkpoint/difference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "yoke/comm/half.h"

namespace yoke::checkpoint {

namespace {

template <typename T>
T at(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return value;
}

double number_at(DType dtype, const std::byte* element) {
  switch (dtype) {
    case DType::kFloat64:
      return at<double>(element);
    case DType::kFloat32:
      return at<float>(element);
    case DType::kFloat16:
      return comm::float_from_float16(at<std::uint16_t>(element));
    case DType::kBFloat16:
      return comm::float_from_bfloat16(at<std::uint16_t>(element));
    case DType::kInt8:
      return at<std::int8_t>(element);
    case DType::kInt32:
      return at<std::int32_t>(element);
    case DType::kInt64:
      return static_cast<double>(at<std::int64_t>(element));
    case DType::kUInt8:
    case DType::kBool:
      return at<std::uint8_t>(element);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

void compare(Difference& result, DType dtype, const std::vector<std::byte>& a,
             const std::vector<std::byte>& b) {
  const std::size_t width = size_of(dtype);
  for (std::size_t i = 0; i < a.size(); i += width) {
    if (std::memcmp(a.data() + i, b.data() + i, width) == 0) continue;
    ++result.differing;
    const double distance =
        std::abs(number_at(dtype, a.data() + i) - number_at(dtype, b.data() + i));
    result.largest =
        std::max(result.largest,
                 std::isfinite(distance) ? distance : std::numeric_limits<double>::infinity());
  }
}

std::vector<std::byte> bytes_of(const Reader& reader, const std::string& name) {
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(reader.contents().tensors.at(name).bytes()));
  reader.read(name, bytes);
  return bytes;
}

}  // namespace

std::vector<Difference> differences(const Reader& a, const Reader& b) {
  std::set<std::string> names;
  for (const Reader* reader : {&a, &b}) {
    for (const auto& [name, entry] : reader->contents().tensors) names.insert(name);
  }
  std::vector<Difference> result;
  for (const auto& name : names) {
    const auto in_a = a.contents().tensors.find(name);
    const auto in_b = b.contents().tensors.find(name);
    Difference one{.name = name, .kind = "values"};
    if (in_b == b.contents().tensors.end()) {
      one.kind = "only in A";
    } else if (in_a == a.contents().tensors.end()) {
      one.kind = "only in B";
    } else if (in_a->second.shape != in_b->second.shape) {
      one.kind = "shape";
    } else if (in_a->second.dtype != in_b->second.dtype) {
      one.kind = "dtype";
    } else {
      one.elements = in_a->second.elements;
      compare(one, in_a->second.dtype, bytes_of(a, name), bytes_of(b, name));
      if (one.differing == 0) continue;
    }
    result.push_back(one);
  }
  return result;
}

}  // namespace yoke::checkpoint
