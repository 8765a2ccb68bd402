#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "yoke/base/log.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/configuration.h"
#include "yoke/cli/existing_run.h"
#include "yoke/cli/numbers.h"
#include "yoke/observe/json_text.h"
#include "yoke/tensor/worker_setup.h"
#include "yoke/train/run.h"

namespace yoke::cli {
namespace {

struct ReplayOptions {
  std::string run;
  std::int64_t step = 0;
  std::int64_t micro_batch = 0;
  bool json = false;
};

void replay(const ReplayOptions& options) {
  auto folder = existing_run(options.run);
  auto configuration = Configuration::recorded(folder.config());
  tensor::set_up_worker(configuration.values().train.threads);
  auto result = train::replay(configuration.values(), folder, options.step, options.micro_batch,
                              read_origin(folder).folder, model::Registry::with_built_in());
  if (!result.warning.empty()) log_warning(result.warning);
  if (options.json) {
    nlohmann::json object = {{"gradient_sha256", result.gradient_sha256},
                             {"loss", result.loss},
                             {"samples", result.samples}};
    std::cout << json_text(object) << '\n';
    return;
  }
  std::cout << "step " << options.step << ", micro-batch " << options.micro_batch
            << "\n  samples   " << result.samples << "\n  loss      " << result.loss
            << "\n  gradient  " << result.gradient_sha256 << '\n';
}

}  // namespace

void add_replay(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<ReplayOptions>();
  auto* command =
      program.add_subcommand("replay", "Compute one micro-batch of one step again, alone");
  command->add_option("RUN", options->run, "Name under runs/, or a path")->required();
  command->add_option("--step", options->step, "The step, counted from 0")
      ->required()
      ->check(whole_number(0));
  command->add_option("--micro-batch", options->micro_batch, "The micro-batch, counted from 0")
      ->required()
      ->check(whole_number(0));
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      R"(Starts from the newest state at or before the step. The gradient is that of the micro-batch's mean loss times its samples, as it enters the sum; the
same hash on another machine means that both compute the same bits.

Examples:
  yoke replay digits --step 120 --micro-batch 3
  yoke replay runs/digits --step 0 --micro-batch 0 --json)");
  command->callback([options, &invocation] {
    replay(*options);
    invocation.exit_code = 0;
  });
}

}  // namespace yoke::cli
