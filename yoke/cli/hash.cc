#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "yoke/cli/commands.h"
#include "yoke/cli/existing_run.h"
#include "yoke/cli/numbers.h"
#include "yoke/observe/json_text.h"
#include "yoke/train/run.h"

namespace yoke::cli {
namespace {

struct HashOptions {
  std::string run;
  std::optional<std::int64_t> step;
  bool json = false;
};

void print_hashes(const HashOptions& options) {
  auto hashes = train::hash(existing_run(options.run), options.step);
  if (options.json) {
    nlohmann::json object = {{"step", hashes.step},
                             {"parameters_sha256", hashes.parameters_sha256},
                             {"buffers_sha256", hashes.buffers_sha256},
                             {"optimizer_sha256", hashes.optimizer_sha256},
                             {"state_sha256", hashes.state_sha256}};
    std::cout << json_text(object) << '\n';
    return;
  }
  std::cout << "step        " << hashes.step << "\nparameters  " << hashes.parameters_sha256
            << "\nbuffers     " << hashes.buffers_sha256 << "\noptimizer   "
            << hashes.optimizer_sha256 << "\nstate       " << hashes.state_sha256 << '\n';
}

}  // namespace

void add_hash(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<HashOptions>();
  auto* command =
      program.add_subcommand("hash", "Hashes of a checkpoint: equal bits, equal hashes");
  command->add_option("RUN", options->run, "Name under runs/, or a path")->required();
  command->add_option("--step", options->step, "The checkpoint of that step (default: the newest)")
      ->check(whole_number(0));
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      R"(SHA-256 over name, dtype, shape and bytes of each tensor, by name; "state" covers everything.

Examples:
  yoke hash digits
  yoke hash runs/digits --step 300 --json)");
  command->callback([options, &invocation] {
    print_hashes(*options);
    invocation.exit_code = 0;
  });
}

}  // namespace yoke::cli
