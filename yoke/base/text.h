#pragma once

#include <sstream>
#include <string>

namespace yoke {

/// The arguments, streamed one after another into a string. This is how messages are built:
/// libtorch brings an fmt of its own, so no header may include Debian's
/// (docs/decisions/0002-fmt-apart.md).
template <typename... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

}  // namespace yoke
