// An exception that nobody catches: where memory is short, one can be thrown before main() (by the
// initialisers of the shared libraries) or in any thread. It then ends the program as it would have
// ended it anywhere else: with a message and exit code 71, without a core file.

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

#include "yoke/base/exit_code.h"

namespace yoke::cli {
namespace {

std::terminate_handler standard = std::abort;  // what prints other exceptions and aborts

[[noreturn]] void end_uncaught() {
  try {
    if (auto exception = std::current_exception()) std::rethrow_exception(exception);
  } catch (const std::bad_alloc&) {
    for (std::string_view part :
         {std::string_view("yoke: "), kNotEnoughMemory, std::string_view("\n")}) {
      [[maybe_unused]] auto written = ::write(STDERR_FILENO, part.data(), part.size());
    }
    ::_exit(kExitEnvironment);
  } catch (...) {
    standard();
  }
  std::abort();
}

void set_up(int, char**, char**) {
  standard = std::set_terminate(end_uncaught);
}

// Run by the loader before the initialisers of the libraries.
[[gnu::section(".preinit_array"), gnu::used]] void (*const at_start)(int, char**, char**) = set_up;

}  // namespace
}  // namespace yoke::cli
