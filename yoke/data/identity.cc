#include "yoke/data/identity.h"

namespace yoke::data {

std::string Identity::hex() const {
  std::string digits(16, '0');
  for (std::size_t i = 0; i < digits.size(); ++i) {
    digits[i] = "0123456789abcdef"[(hash_ >> (60 - 4 * i)) & 15];
  }
  return digits;
}

}  // namespace yoke::data
