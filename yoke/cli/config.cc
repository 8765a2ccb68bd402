#include <iostream>
#include <memory>

#include "yoke/cli/commands.h"
#include "yoke/cli/configuration.h"

namespace yoke::cli {
namespace {

struct ShowOptions {
  std::string file;
  std::vector<std::string> set;
  bool resolved = false;
  bool origin = false;
};

void show(const ShowOptions& options) {
  auto configuration = Configuration::resolve(options.file, set_flags(options.set));
  if (options.resolved) {
    std::cout << configuration.tree().to_toml(options.origin);
    return;
  }
  for (const auto& entry : configuration.tree().entries()) {
    if (entry.origin == "default") continue;
    std::cout << entry.key << " = " << entry.value;
    if (options.origin) std::cout << "  # " << entry.origin;
    std::cout << '\n';
  }
}

}  // namespace

void add_config(CLI::App& program, Invocation& invocation) {
  auto* command = program.add_subcommand("config", "Look at the configuration of a run");
  command->require_subcommand(1);
  auto options = std::make_shared<ShowOptions>();
  auto* show_command = command->add_subcommand("show", "Print the values as TOML");
  show_command->add_option("FILE", options->file, "The run's configuration")->required();
  show_command->add_flag("--resolved", options->resolved,
                         "All keys, with those that have their default");
  show_command->add_flag(
      "--origin", options->origin,
      "After each value where it came from: a line of the file, a variable, a flag");
  show_command->add_option("--set", options->set, "section.key=value, as for yoke train")
      ->take_all()
      ->expected(1);
  const char* examples =
      R"(A value comes from --set, else from the variable YOKE_SECTION_KEY, else from the file, else it has its default.

Examples:
  yoke config show examples/digits.toml
  yoke config show examples/digits.toml --resolved --origin --set optimizer.lr=0.1)";
  command->footer(examples);
  show_command->footer(examples);
  show_command->callback([options, &invocation] {
    show(*options);
    invocation.exit_code = 0;
  });
}

}  // namespace yoke::cli
