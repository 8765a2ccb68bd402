#include "yoke/cli/version.h"

#include <torch/version.h>

#include "yoke/base/text.h"

namespace yoke::cli {

std::string version_text() {
#ifdef __clang__
  const char* compiler = __VERSION__;
#else
  const char* compiler = "g++ " __VERSION__;
#endif
  return cat("yoke      ", YOKE_VERSION, "\nlibtorch  ", TORCH_VERSION, "\ncompiler  ", compiler,
             "\nbuild     ", YOKE_BUILD_TYPE);
}

}  // namespace yoke::cli
