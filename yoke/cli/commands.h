#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace yoke::cli {

/// One call of the program: what was typed, and what came of it.
struct Invocation {
  std::vector<std::string> arguments;  ///< all of them, the program's name first
  std::vector<std::string> program;    ///< what stands after "--"
  int exit_code = 0;                   ///< set by the command
};

/// Each adds its command, with its help, to the program. While the command line is parsed the
/// command runs; it throws what base/error.h lists.
void add_train(CLI::App& program, Invocation& invocation);
void add_launch(CLI::App& program, Invocation& invocation);
void add_eval(CLI::App& program, Invocation& invocation);
void add_hash(CLI::App& program, Invocation& invocation);
void add_replay(CLI::App& program, Invocation& invocation);
void add_ckpt(CLI::App& program, Invocation& invocation);
void add_config(CLI::App& program, Invocation& invocation);
void add_membership(CLI::App& program, Invocation& invocation);
void add_doctor(CLI::App& program, Invocation& invocation);

}  // namespace yoke::cli
