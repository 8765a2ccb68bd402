#pragma once

#include <string>
#include <string_view>

#include "yoke/data/table.h"

namespace yoke::data {

/// A pair of files in MNIST's IDX format (http://yann.lecun.com/exdb/mnist): big-endian header,
/// then a byte a pixel (magic 0x00000803, count, rows, columns) or a byte a label (magic
/// 0x00000801, count). A sample has the shape {1, rows, columns}. Throws DataError with the file's
/// name, the offset, what was expected and what was found.
TableContent parse_idx(std::string_view images, const std::string& images_name,
                       std::string_view labels, const std::string& labels_name, double scale);

}  // namespace yoke::data
