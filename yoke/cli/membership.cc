#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "yoke/base/error.h"
#include "yoke/cli/command_line.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/coordinator_file.h"
#include "yoke/cli/numbers.h"

/// yoke status, leave and resize: what a person says to the coordinator of a run that trains.
namespace yoke::cli {

namespace {

using nlohmann::json;

std::string text_of(const json& status) {
  std::string text = cat("generation ", status.at("generation"), ", step ", status.at("step"), ", ",
                         status.at("wanted"), " workers wanted",
                         status.at("running").get<bool>() ? "" : "; waiting for workers", "\n");
  for (const json& change : status.at("changes")) {
    text += cat("last change: ", change.at("cause").get<std::string>());
    if (change.at("rank").get<int>() >= 0) text += cat(", rank ", change.at("rank"));
    const std::string detail = change.at("detail");
    text += detail.empty() ? "\n" : cat(" (", detail, ")\n");
  }
  for (const json& worker : status.at("workers")) {
    const json& rank = worker.at("rank");
    text +=
        cat(rank.is_null() ? "no rank" : cat("rank ", rank), ": worker ", worker.at("slot"),
            ", process ", worker.at("pid"), ", ", worker.at("phase").get<std::string>(), ", step ",
            worker.at("step"), ", in ", worker.at("section").get<std::string>(), "\n");
  }
  return text;
}

struct Options {
  std::string run;
  int rank = 0;
  int workers = 1;
  bool json = false;
};

}  // namespace

void add_membership(CLI::App& program, Invocation&) {
  auto options = std::make_shared<Options>();
  const std::string run_help = "Name under runs/, or a path";

  auto* status = program.add_subcommand("status", "Who trains in a run, and why it last changed");
  status->add_option("RUN", options->run, run_help)->required();
  status->add_flag("--json", options->json, "Print it as JSON");
  status->callback([options] {
    const auto answer = ask_coordinator(RunFolder::named(options->run), {{"what", "status"}});
    const json& found = answer.at("status");
    std::cout << (options->json ? found.dump() + "\n" : text_of(found));
  });

  auto* leave = program.add_subcommand("leave", "Let one worker of a run go, after its step");
  leave->add_option("RUN", options->run, run_help)->required();
  leave->add_option("RANK", options->rank, "Its rank, as yoke status shows it")
      ->required()
      ->check(whole_number(0, 4095));
  leave->callback([options] {
    ask_coordinator(RunFolder::named(options->run), {{"what", "leave"}, {"rank", options->rank}});
  });

  auto* resize = program.add_subcommand("resize", "Change the number of workers of a run");
  resize->add_option("RUN", options->run, run_help)->required();
  resize->add_option("N", options->workers, "Workers from the next step on")
      ->required()
      ->check(whole_number(1, 4096));
  resize->callback([options] {
    ask_coordinator(RunFolder::named(options->run),
                    {{"what", "resize"}, {"workers", options->workers}});
  });
}

}  // namespace yoke::cli
