#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace yoke::data {

/// The code points of UTF-8 text (RFC 3629: no surrogates, no overlong forms). Throws DataError
/// with `name` and the offset of the first byte that is not UTF-8.
std::u32string decode_utf8(std::string_view bytes, const std::string& name);

std::string encode_utf8(std::u32string_view characters);

}  // namespace yoke::data
