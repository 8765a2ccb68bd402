#pragma once

#include <string>
#include <string_view>

#include "yoke/data/table.h"

namespace yoke::data {

/// Rows of comma-separated numbers, the label (an integer from 0 to 65,535) in the last column.
/// Spaces around a number, CRLF, a byte order mark, blank lines and a missing last line end are
/// fine. The first line is a header, and skipped, if its last field is no number or none of its
/// fields is. Inputs are multiplied by `scale`. Throws DataError with `name`, line and column for
/// anything else.
TableContent parse_csv(std::string_view content, const std::string& name, double scale);

}  // namespace yoke::data
