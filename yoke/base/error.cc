#include "yoke/base/error.h"

namespace yoke::detail {

void ensure_failed(const char* expression, const char* file, int line, const std::string& message) {
  throw InternalError(cat("internal error: ", expression, " does not hold at ", file, ":", line,
                          ". ", message,
                          " This is a bug in yoke; please report it with this line."));
}

}  // namespace yoke::detail
