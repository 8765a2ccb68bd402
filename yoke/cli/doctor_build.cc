#include "yoke/cli/doctor_build.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <torch/version.h>

#include "yoke/base/text.h"

namespace yoke::cli {
namespace {

/// "mkl" of "BLAS_INFO=mkl, ".
std::string setting(const std::string& configuration, const std::string& name) {
  const auto found = configuration.find(name + "=");
  if (found == std::string::npos) return {};
  const auto first = found + name.size() + 1;
  return configuration.substr(first, configuration.find_first_of(", \n", first) - first);
}

}  // namespace

cluster::MachineFacts::Build facts_of_build() {
  cluster::MachineFacts::Build build;
  build.yoke = YOKE_VERSION;
  build.type = YOKE_BUILD_TYPE;
#ifdef __clang__
  build.compiler = __VERSION__;
#else
  build.compiler = "g++ " __VERSION__;
#endif
  build.libtorch = TORCH_VERSION;
  build.capability = at::get_cpu_capability();
  const auto configuration = at::show_config();
  build.blas = setting(configuration, "BLAS_INFO");
  build.openmp = setting(configuration, "USE_OPENMP") == "ON";
  build.threads = at::get_num_threads();
  Dl_info library{};
  if (::dladdr(reinterpret_cast<const void*>(&at::get_num_threads), &library) != 0) {
    build.library = library.dli_fname;
  }
  return build;
}

}  // namespace yoke::cli
