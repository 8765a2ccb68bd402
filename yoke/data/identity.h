#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "yoke/base/hash.h"

namespace yoke::data {

/// XXH3 over the parts of a data set, each preceded by its size so that no two contents run
/// together.
class Identity {
 public:
  template <typename T>
  Identity& add(const std::vector<T>& values) {
    add(static_cast<std::int64_t>(values.size()));
    hash_ = xxh3(std::as_bytes(std::span(values)), hash_);
    return *this;
  }
  Identity& add(std::int64_t value) {
    hash_ = xxh3(std::as_bytes(std::span(&value, 1)), hash_);
    return *this;
  }
  Identity& add(double value) {
    hash_ = xxh3(std::as_bytes(std::span(&value, 1)), hash_);
    return *this;
  }
  /// 16 hexadecimal digits.
  std::string hex() const;

 private:
  std::uint64_t hash_ = 0;
};

}  // namespace yoke::data
