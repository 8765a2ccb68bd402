#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "yoke/cli/commands.h"
#include "yoke/cli/configuration.h"
#include "yoke/cli/existing_run.h"
#include "yoke/cli/numbers.h"
#include "yoke/cli/run_report.h"
#include "yoke/observe/json_text.h"
#include "yoke/tensor/worker_setup.h"
#include "yoke/train/run.h"

namespace yoke::cli {
namespace {

struct EvalOptions {
  std::string run;
  std::optional<std::int64_t> step;
  bool json = false;
};

void evaluate(const EvalOptions& options) {
  auto folder = existing_run(options.run);
  auto configuration = Configuration::recorded(folder.config());
  tensor::set_up_worker(configuration.values().train.threads);
  auto result = train::evaluate(configuration.values(), folder, options.step,
                                read_origin(folder).folder, model::Registry::with_built_in());
  if (options.json) {
    nlohmann::json object = {
        {"step", result.step}, {"metrics", result.metrics}, {"sample", result.sample}};
    std::cout << json_text(object, 2) << '\n';
    return;
  }
  std::cout << folder.root().string() << ", step " << result.step << ":\n";
  for (const auto& [name, value] : result.metrics) {
    std::cout << "  " << name << "  " << metric_text(name, value) << '\n';
  }
  if (!result.sample.empty()) std::cout << "  The model writes:\n" << result.sample << '\n';
}

}  // namespace

void add_eval(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<EvalOptions>();
  auto* command = program.add_subcommand("eval", "Evaluate a run on its test data");
  command->add_option("RUN", options->run, "Name under runs/, or a path")->required();
  command->add_option("--step", options->step, "The checkpoint of that step (default: the newest)")
      ->check(whole_number(0));
  command->add_flag("--json", options->json, "Print step, metrics and sample as JSON");
  command->footer(R"(Examples:
  yoke eval digits
  yoke eval runs/digits --step 300 --json)");
  command->callback([options, &invocation] {
    evaluate(*options);
    invocation.exit_code = 0;
  });
}

}  // namespace yoke::cli
