#include "yoke/data/table.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/data/identity.h"

namespace yoke::data {
namespace {

std::int64_t elements_of(const std::vector<std::int64_t>& shape) {
  std::int64_t elements = 1;
  for (std::int64_t size : shape) elements *= size;
  return elements;
}

template <typename T>
std::vector<T> select_rows(const std::vector<T>& values, std::size_t row,
                           std::span<const std::int64_t> rows) {
  std::vector<T> selected;
  selected.reserve(row * rows.size());
  for (std::int64_t index : rows) {
    auto first = values.begin() + static_cast<std::ptrdiff_t>(row) * index;
    selected.insert(selected.end(), first, first + static_cast<std::ptrdiff_t>(row));
  }
  return selected;
}

std::string identity_of(const TableContent& content, std::int64_t classes) {
  Identity identity;
  identity.add(content.shape).add(classes).add(content.labels);
  if (const auto* bytes = std::get_if<Bytes>(&content.inputs)) {
    identity.add(bytes->values).add(bytes->scale);
  } else {
    identity.add(std::get<std::vector<float>>(content.inputs));
  }
  return identity.hex();
}

std::string as_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (std::int64_t size : shape) text += cat(text.empty() ? "" : "x", size);
  return text;
}

}  // namespace

TableContent TableContent::select(std::span<const std::int64_t> rows) const {
  auto row = static_cast<std::size_t>(elements_of(shape));
  TableContent selected{.shape = shape, .inputs = {}, .labels = select_rows(labels, 1, rows)};
  if (const auto* bytes = std::get_if<Bytes>(&inputs)) {
    selected.inputs = Bytes{.values = select_rows(bytes->values, row, rows), .scale = bytes->scale};
  } else {
    selected.inputs = select_rows(std::get<std::vector<float>>(inputs), row, rows);
  }
  return selected;
}

Table::Table(TableContent content, std::int64_t classes)
    : content_(std::move(content)),
      classes_(classes),
      row_(elements_of(content_.shape)),
      identity_(identity_of(content_, classes)) {
  if (const auto* bytes = std::get_if<Bytes>(&content_.inputs)) {
    for (int byte = 0; byte < 256; ++byte) {
      byte_values_[static_cast<std::size_t>(byte)] =
          static_cast<float>(byte / 255.0 * bytes->scale);
    }
  }
}

Batch Table::get(std::span<const std::int64_t> indices) const {
  auto count = static_cast<std::int64_t>(indices.size());
  std::vector<std::int64_t> shape{count};
  shape.insert(shape.end(), content_.shape.begin(), content_.shape.end());
  Batch batch{.input = at::empty(shape, at::kFloat),
              .target = at::empty({count}, at::kLong),
              .weight = count};
  float* input = batch.input.mutable_data_ptr<float>();
  auto* target = batch.target.mutable_data_ptr<std::int64_t>();
  for (std::int64_t index : indices) {
    YOKE_ENSURE(index >= 0 && index < size(), "index ", index, " of a data set of ", size(),
                " samples.");
    if (const auto* bytes = std::get_if<Bytes>(&content_.inputs)) {
      const std::uint8_t* row = bytes->values.data() + index * row_;
      std::transform(row, row + row_, input,
                     [this](std::uint8_t byte) { return byte_values_[byte]; });
    } else {
      const float* row = std::get<std::vector<float>>(content_.inputs).data() + index * row_;
      std::copy(row, row + row_, input);
    }
    input += row_;
    *target++ = content_.labels[static_cast<std::size_t>(index)];
  }
  return batch;
}

std::int64_t classes_of(const TableContent& content, const std::string& name) {
  auto [least, most] = std::minmax_element(content.labels.begin(), content.labels.end());
  if (*least == *most) {
    throw DataError(cat(name, ": all ", content.labels.size(), " samples have the label ", *least,
                        "; there is nothing to tell apart. Check that the file is complete and "
                        "that its labels are ",
                        "where they should be."));
  }
  return *most + 1;
}

void check_fits(const TableContent& test, const std::string& test_name, const TableContent& train,
                std::int64_t classes) {
  if (test.shape != train.shape) {
    throw DataError(cat(test_name, ": a sample has ", as_text(test.shape), " values, but ",
                        as_text(train.shape),
                        " in the training set. Both must come from the same source."));
  }
  std::int64_t most = *std::max_element(test.labels.begin(), test.labels.end());
  if (most >= classes) {
    throw DataError(cat(test_name, ": label ", most,
                        " is out of range; the training set has the labels 0 to ", classes - 1,
                        "."));
  }
}

}  // namespace yoke::data
