#pragma once

#include <string>

namespace yoke::cli {

/// yoke, libtorch, compiler and build type, one a line.
std::string version_text();

}  // namespace yoke::cli
