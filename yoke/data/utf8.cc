#include "yoke/data/utf8.h"

#include "yoke/base/error.h"

namespace yoke::data {
namespace {

/// Bytes of the character that starts with `lead`; 0 if none does.
std::size_t length_of(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return 2;
  if (lead >= 0xe0 && lead < 0xf0) return 3;
  if (lead >= 0xf0 && lead < 0xf5) return 4;
  return 0;
}

/// The character at the start of `bytes`, which has `length` of them; -1 if it is malformed.
char32_t character_of(std::string_view bytes, std::size_t length) {
  constexpr char32_t kMalformed = static_cast<char32_t>(-1);
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  auto lead = static_cast<unsigned char>(bytes[0]);
  char32_t character = length == 1 ? lead : lead & (0x7f >> length);
  for (std::size_t i = 1; i < length; ++i) {
    auto next = static_cast<unsigned char>(bytes[i]);
    if ((next & 0xc0) != 0x80) return kMalformed;
    character = character << 6 | (next & 0x3f);
  }
  bool surrogate = character >= 0xd800 && character < 0xe000;
  return character < kLeast[length] || surrogate || character > 0x10ffff ? kMalformed : character;
}

}  // namespace

std::u32string decode_utf8(std::string_view bytes, const std::string& name) {
  std::u32string characters;
  characters.reserve(bytes.size());
  for (std::size_t offset = 0; offset < bytes.size();) {
    std::size_t length = length_of(static_cast<unsigned char>(bytes[offset]));
    char32_t character = static_cast<char32_t>(-1);
    if (length > 0 && offset + length <= bytes.size())
      character = character_of(bytes.substr(offset), length);
    if (character == static_cast<char32_t>(-1)) {
      throw DataError(
          cat(name, ": offset ", offset, ": not UTF-8. Convert the text, for example with iconv."));
    }
    characters += character;
    offset += length;
  }
  return characters;
}

std::string encode_utf8(std::u32string_view characters) {
  std::string bytes;
  auto follow = [&bytes](char32_t bits) { bytes += static_cast<char>(0x80 | (bits & 0x3f)); };
  for (char32_t c : characters) {
    if (c < 0x80) {
      bytes += static_cast<char>(c);
    } else if (c < 0x800) {
      bytes += static_cast<char>(0xc0 | c >> 6);
      follow(c);
    } else if (c < 0x10000) {
      bytes += static_cast<char>(0xe0 | c >> 12);
      follow(c >> 6);
      follow(c);
    } else {
      bytes += static_cast<char>(0xf0 | c >> 18);
      follow(c >> 12);
      follow(c >> 6);
      follow(c);
    }
  }
  return bytes;
}

}  // namespace yoke::data
