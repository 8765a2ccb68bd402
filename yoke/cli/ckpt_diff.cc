// yoke ckpt diff

#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "yoke/base/exit_code.h"
#include "yoke/checkpoint/difference.h"
#include "yoke/cli/ckpt.h"
#include "yoke/cli/existing_run.h"
#include "yoke/cli/numbers.h"
#include "yoke/observe/json_text.h"

namespace yoke::cli {
namespace {

struct DiffOptions {
  std::string run, other;
  std::int64_t a = 0, b = 0;
  bool json = false;
};

nlohmann::json json_of(const checkpoint::Difference& one) {
  nlohmann::json json{{"name", one.name}, {"kind", one.kind}};
  if (one.kind == "values") {
    json["elements"] = one.elements;
    json["differing"] = one.differing;
    json["max_abs"] = one.largest;  // null where it is infinite
  }
  return json;
}

int diff(const DiffOptions& options) {
  const checkpoint::Reader a(existing_run(options.run), options.a);
  const checkpoint::Reader b(existing_run(options.other.empty() ? options.run : options.other),
                             options.b);
  const auto found = checkpoint::differences(a, b);
  for (const auto& one : found) {
    if (options.json) {
      std::cout << json_text(json_of(one)) << '\n';
    } else if (one.kind == "values") {
      std::cout << one.name << ": " << one.differing << " of " << one.elements
                << " elements differ, by at most " << one.largest << '\n';
    } else {
      std::cout << one.name << ": "
                << (one.kind.starts_with("only") ? one.kind : "another " + one.kind) << '\n';
    }
  }
  if (!options.json && found.empty())
    std::cout << "the same bits in all " << a.contents().tensors.size() << " tensors\n";
  return found.empty() ? kExitOk : kExitFailed;
}

}  // namespace

void add_ckpt_diff(CLI::App& ckpt, Invocation& invocation) {
  auto options = std::make_shared<DiffOptions>();
  auto* command = ckpt.add_subcommand("diff", "Which tensors of two checkpoints differ");
  command->add_option("RUN", options->run, "Name under runs/, or a path")->required();
  command->add_option("A", options->a, "Step of the one")->required()->check(whole_number(0));
  command->add_option("B", options->b, "Step of the other")->required()->check(whole_number(0));
  command->add_option("--other", options->other, "The run that B belongs to (default: RUN)");
  command->add_flag("--json", options->json, "Print one JSON object a line");
  command->footer(
      R"(Compares bits. Ends with 0 if there is no difference, with 1 if there is one.

Examples:
  yoke ckpt diff digits 200 300
  yoke ckpt diff digits 300 300 --other digits-on-4 --json)");
  command->callback([options, &invocation] { invocation.exit_code = diff(*options); });
}

}  // namespace yoke::cli
