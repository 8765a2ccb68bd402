#include "yoke/cli/program.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <optional>

#include "yoke/base/config_tree.h"
#include "yoke/base/error.h"
#include "yoke/base/exit_code.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/version.h"

namespace yoke::cli {
namespace {

constexpr const char* kAbout =
    "Trains one neural network on many processes, with the same weights, bit for bit,\n"
    "for any number of them.\n";

constexpr const char* kExamples = R"(Examples:
  yoke train examples/digits.toml -n 2       train on 2 processes; the same command resumes
  yoke train examples/digits.toml --dry-run  show what would be done
  yoke eval digits                           evaluate the newest checkpoint of a run
  yoke ckpt ls digits                        its checkpoints
  yoke launch -n 4 -- ./my_program           start any program written for torchrun's variables
  yoke doctor                                say whether this machine can train, and what to do

A run is a folder, runs/NAME. Values come from the file, YOKE_SECTION_KEY, and --set section.key=value.
YOKE_LOG=debug|info|warning|error sets how much is said; NO_COLOR and CLICOLOR_FORCE are heeded.
Exit codes: 0 done, 1 failed, 2 wrong usage, 65 bad data, 70 a bug, 71 this machine lacks something (memory,
processes, ports), 74 files, 75 stopped and saved (start again to continue), 76 a process was lost, 77 do not
start it again as it is, 78 bad
configuration, 128+n killed by signal n (130 and 143: a second Ctrl-C or SIGTERM; 141: the reader of stdout left).)";

/// The command that was typed, or the program itself.
const CLI::App& innermost(const CLI::App& program) {
  const auto* app = &program;
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return *app;
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name()
                                     : cat(full_name(*app.get_parent()), ' ', app.get_name());
}

std::vector<std::string> names_of_flags(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    for (const auto& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  return names;
}

std::string suggestion(const std::string& word, const std::vector<std::string>& candidates) {
  auto near = did_you_mean(word, candidates);
  return near ? cat(" Did you mean ", *near, "?") : std::string();
}

std::string unexpected(const CLI::App& program, const CLI::App& app) {
  auto words = program.remaining(true);
  std::string word = words.empty() ? "an argument" : words.front();
  if (word.starts_with("-")) {
    word = word.substr(0, word.find('='));
    return cat(full_name(app), " has no flag ", word, '.', suggestion(word, names_of_flags(app)));
  }
  if (!app.get_subcommands(nullptr).empty()) {
    return cat(full_name(app), " has no command \"", word, "\".",
               suggestion(word, names_of_commands(app)));
  }
  return cat(full_name(app), ": ", word, " is one argument too many.");
}

int usage_error(const CLI::App& app, const std::string& message) {
  std::cerr << "yoke: " << message << "\nTry: " << full_name(app) << " --help\n";
  return kExitUsage;
}

/// CLI11 has no way to leave the words after "--" alone in a command.
void split_off_program(Invocation& invocation, std::vector<std::string>& arguments) {
  auto mark = std::find(arguments.begin(), arguments.end(), "--");
  if (mark == arguments.end() || arguments.size() < 2 || arguments[1] != "launch") return;
  invocation.program.assign(mark + 1, arguments.end());
  arguments.erase(mark, arguments.end());
}

int parse_and_run(CLI::App& program, Invocation& invocation) {
  auto arguments = invocation.arguments;
  split_off_program(invocation, arguments);
  std::vector<const char*> pointers;
  for (const auto& argument : arguments) pointers.push_back(argument.c_str());
  try {
    if (arguments.size() < 2) throw CLI::CallForHelp();
    program.parse(static_cast<int>(pointers.size()), pointers.data());
    return invocation.exit_code;
  } catch (const CLI::Success& answer) {
    int code = program.exit(answer);
    return arguments.size() < 2 ? kExitUsage : code;
  } catch (const CLI::ExtrasError&) {
    const auto& app = innermost(program);
    return usage_error(app, unexpected(program, app));
  } catch (const CLI::ParseError& error) {
    const auto& app = innermost(program);
    bool unknown = !program.remaining(true).empty();
    return usage_error(app, unknown ? unexpected(program, app) : error.what());
  }
}

/// Whoever read our stdout through a pipe has ended.
bool reader_has_left() {
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

/// `code`, unless that says that all went well and what was printed did not reach stdout.
int with_stdout_complete(int code) {
  std::cout.flush();
  if (std::cout) return code;
  bool left = reader_has_left();
  if (!left) std::cerr << "yoke: cannot write to stdout: what was printed is not complete.\n";
  if (code != kExitOk) return code;
  return left ? kExitBrokenPipe : kExitIo;
}

}  // namespace

int run_program(std::vector<std::string> arguments) {
  Invocation invocation;
  invocation.arguments = std::move(arguments);
  CLI::App program(kAbout, "yoke");
  program.footer(kExamples);
  program.set_version_flag("--version", version_text);
  program.require_subcommand(1);
  program.get_formatter()->column_width(32);
  add_train(program, invocation);
  add_eval(program, invocation);
  add_hash(program, invocation);
  add_replay(program, invocation);
  add_ckpt(program, invocation);
  add_config(program, invocation);
  add_membership(program, invocation);
  add_launch(program, invocation);
  add_doctor(program, invocation);
  try {
    int code = parse_and_run(program, invocation);
    return with_stdout_complete(code);
  } catch (const UsageError& error) {
    return usage_error(innermost(program), error.what());
  } catch (const std::exception& error) {
    std::cerr << "yoke: " << message_of(error) << '\n';
    return exit_code_of(error);
  }
}

}  // namespace yoke::cli
