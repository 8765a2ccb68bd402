#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace yoke {

/// `value` as text, on one line or with `indent` spaces a level. Never throws for its content: what
/// is not UTF-8 (a path may be anything) becomes U+FFFD, a number that is not finite null.
std::string json_text(const nlohmann::json& value, int indent = -1);

}  // namespace yoke
