#pragma once

#include <string>
#include <vector>

namespace yoke::cli {

/// The whole program. Parses the arguments (the program's name first), runs the command, prints
/// errors to stderr, and returns the exit code (base/exit_code.h). A command or flag that does not
/// exist is answered with the nearest one.
int run_program(std::vector<std::string> arguments);

}  // namespace yoke::cli
