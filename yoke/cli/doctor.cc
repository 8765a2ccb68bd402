#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "yoke/base/exit_code.h"
#include "yoke/base/terminal.h"
#include "yoke/base/text.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/doctor_build.h"
#include "yoke/cli/doctor_ranks.h"
#include "yoke/cli/numbers.h"
#include "yoke/cluster/findings.h"
#include "yoke/net/shm/group.h"
#include "yoke/observe/json_text.h"

namespace yoke::cli {
namespace {

using cluster::Finding;
using cluster::Verdict;

struct DoctorOptions {
  int ranks = 0;  ///< 0: none are started
  bool json = false;
  std::string color = "auto";
};

std::string colored(Verdict verdict, bool color) {
  const auto name = name_of(verdict);
  if (!color) return name;
  const char* code = verdict == Verdict::kPass ? "32" : verdict == Verdict::kWarn ? "33" : "31";
  return cat("\033[", code, "m", name, "\033[0m");
}

std::string counted(std::ptrdiff_t count, const std::string& what) {
  return cat(count, ' ', what, count == 1 ? "" : "s");
}

void print_table(const std::vector<Finding>& findings, bool color) {
  std::size_t width = 0;
  for (const auto& finding : findings) width = std::max(width, finding.check.size());
  for (const auto& finding : findings) {
    std::cout << colored(finding.verdict, color) << "  " << finding.check
              << std::string(width + 2 - finding.check.size(), ' ') << finding.found << '\n';
    if (!finding.advice.empty()) {
      std::cout << std::string(width + 8, ' ') << finding.advice << '\n';
    }
  }
  const auto with = [&](Verdict verdict) {
    return std::count_if(findings.begin(), findings.end(),
                         [&](const Finding& finding) { return finding.verdict == verdict; });
  };
  std::cout << counted(std::ssize(findings), "check") << ", "
            << counted(with(Verdict::kWarn), "warning") << ", "
            << counted(with(Verdict::kFail), "failure") << '\n';
}

void print_json(const std::vector<Finding>& findings, bool ok) {
  auto checks = nlohmann::json::array();
  for (const auto& finding : findings) {
    checks.push_back({{"check", finding.check},
                      {"verdict", name_of(finding.verdict)},
                      {"found", finding.found},
                      {"advice", finding.advice}});
  }
  std::cout << json_text({{"ok", ok}, {"checks", checks}}) << '\n';
}

int examine(const DoctorOptions& options) {
  // What forks comes first: libtorch may start threads when it is asked about itself.
  auto facts = cluster::look_at_this_machine();
  std::vector<Finding> of_ranks;
  if (options.ranks > 0 && facts.network.loopback_problem.empty()) {
    of_ranks = try_ranks(options.ranks);
  } else if (options.ranks > 0) {
    of_ranks.push_back({.check = "all-reduce",
                        .verdict = Verdict::kFail,
                        .found = "not tried: no rank could find another",
                        .advice = "See to the loopback first."});
  }
  facts.build = facts_of_build();
  auto findings = findings_of(facts);
  findings.insert(findings.end(), of_ranks.begin(), of_ranks.end());
  const bool ok = std::none_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.verdict == Verdict::kFail;
  });
  if (options.json) {
    print_json(findings, ok);
  } else {
    const bool color =
        options.color == "always" || (options.color == "auto" && wants_color(STDOUT_FILENO));
    print_table(findings, color);
  }
  return ok ? kExitOk : kExitEnvironment;
}

}  // namespace

void add_doctor(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<DoctorOptions>();
  auto* command = program.add_subcommand("doctor", "Can this machine train? What to do if not");
  command
      ->add_option("--ranks", options->ranks,
                   "Also start that many processes that all-reduce with each other")
      ->check(whole_number(1, net::ShmGroup::kMostRanks));
  command->add_flag("--json", options->json, "Print one JSON object");
  command->add_option("--color", options->color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  command->footer(
      R"(Each check passes, warns (slower, or not with many workers) or fails (training does not work); then the
exit code is 71. Nothing is left behind: 16 MiB are written to a file without a name in the current folder.

Examples:
  yoke doctor
  yoke doctor --ranks 4
  yoke doctor --json > machine.json)");
  command->callback([options, &invocation] { invocation.exit_code = examine(*options); });
}

}  // namespace yoke::cli
