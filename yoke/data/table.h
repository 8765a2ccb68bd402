#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "yoke/data/dataset.h"

namespace yoke::data {

/// Grey values as a file has them, a byte each; a model gets value * scale / 255.
struct Bytes {
  std::vector<std::uint8_t> values;
  double scale = 1.0;
};

/// Rows of equal size with a label each, as a parser hands them over.
struct TableContent {
  std::vector<std::int64_t> shape;                 ///< of one row
  std::variant<std::vector<float>, Bytes> inputs;  ///< row after row
  std::vector<std::int64_t> labels;

  /// These rows, in this order.
  TableContent select(std::span<const std::int64_t> rows) const;
};

/// A data set of rows and labels in memory.
class Table final : public Dataset {
 public:
  /// `classes`: labels lie in 0 .. classes - 1, checked by those who parse.
  Table(TableContent content, std::int64_t classes);

  std::int64_t size() const override { return static_cast<std::int64_t>(content_.labels.size()); }
  Shape shape() const override { return {.input = content_.shape, .classes = classes_}; }
  Batch get(std::span<const std::int64_t> indices) const override;
  std::string identity() const override { return identity_; }

 private:
  TableContent content_;
  std::int64_t classes_;
  std::int64_t row_;                      ///< elements of one row
  std::array<float, 256> byte_values_{};  ///< what each byte means
  std::string identity_;
};

/// The number of classes: the largest label + 1. Throws DataError if all rows have one label;
/// `name` is the file.
std::int64_t classes_of(const TableContent& content, const std::string& name);

/// Throws DataError if the rows of a test file do not fit those that a model is trained on: another
/// shape, or labels that do not occur there.
void check_fits(const TableContent& test, const std::string& test_name, const TableContent& train,
                std::int64_t classes);

}  // namespace yoke::data
