#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace yoke::net {

/// Appends integers in little-endian order, whatever the machine's own is.
class ByteWriter {
 public:
  template <std::integral Integer>
  ByteWriter& put(Integer value) {
    auto bits = static_cast<std::make_unsigned_t<Integer>>(value);
    for (std::size_t i = 0; i < sizeof(Integer); ++i) {
      bytes_.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(bits) >> (8 * i) & 0xff));
    }
    return *this;
  }
  ByteWriter& put(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  ByteWriter& put_text(std::string_view text) {
    put(static_cast<std::uint32_t>(text.size()));
    return put(std::as_bytes(std::span(text)));
  }
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads what ByteWriter wrote. Reading past the end yields zeros and makes good() false; nothing
/// is allocated by a length that the bytes do not back.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <std::integral Integer>
  Integer get() {
    std::uint64_t bits = 0;
    auto bytes = take(sizeof(Integer));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bits |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
    }
    return static_cast<Integer>(static_cast<std::make_unsigned_t<Integer>>(bits));
  }
  /// Empty when fewer than `count` bytes are left.
  std::span<const std::byte> take(std::size_t count) {
    if (count > rest_.size()) {
      good_ = false;
      rest_ = {};
      return {};
    }
    auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  std::string get_text() {
    auto bytes = take(get<std::uint32_t>());
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  std::span<const std::byte> rest() const { return rest_; }
  bool good() const { return good_; }
  /// All was there, and nothing is left.
  bool finished() const { return good_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool good_ = true;
};

}  // namespace yoke::net
