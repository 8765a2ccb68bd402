#include <iostream>
#include <memory>

#include "yoke/base/error.h"
#include "yoke/cli/command_line.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/numbers.h"
#include "yoke/cli/train_request.h"
#include "yoke/net/place.h"

namespace yoke::cli {
namespace {

struct TrainOptions {
  std::string file;
  std::optional<int> workers;
  std::string run;
  std::optional<std::int64_t> steps;
  std::optional<std::int64_t> stop_after;
  std::optional<std::int64_t> bucket_bytes;
  std::string transport;
  std::string topology;
  std::string mesh;
  std::string progress = "auto";
  std::vector<std::string> set;
  double grace = 60;
  bool fresh = false;
  bool dry_run = false;
  bool json = false;
};

std::vector<FlagValue> flags_of(const TrainOptions& options) {
  auto flags = set_flags(options.set);
  if (options.steps) flags.push_back({cat("train.steps=", *options.steps), "--steps"});
  if (options.bucket_bytes) {
    flags.push_back({cat("comm.bucket_bytes=", *options.bucket_bytes), "--bucket-bytes"});
  }
  if (!options.transport.empty()) {
    flags.push_back({cat("comm.transport=", options.transport), "--transport"});
  }
  if (!options.topology.empty()) {
    flags.push_back({cat("comm.topology=", options.topology), "--topology"});
  }
  return flags;
}

/// The only axis that this version has is data: --mesh data=N, which must agree with -n.
std::optional<int> workers_of_mesh(const std::string& mesh) {
  if (mesh.empty()) return std::nullopt;
  const std::string axis = "data=";
  int workers = 0;
  if (!mesh.starts_with(axis) || !CLI::detail::lexical_cast(mesh.substr(axis.size()), workers) ||
      workers < 1) {
    throw ConfigError(cat("--mesh ", mesh,
                          " is not supported by this version: its mesh has the axis data alone, as "
                          "in --mesh data=4."));
  }
  return workers;
}

int workers_of(const TrainOptions& options, const Place& place) {
  auto mesh = workers_of_mesh(options.mesh);
  if (mesh && options.workers && *mesh != *options.workers) {
    throw UsageError(
        cat("--mesh data=", *mesh, " and -n ", *options.workers, " disagree; give one of them."));
  }
  auto asked = options.workers ? options.workers : mesh;
  if (place.size == 1) return asked.value_or(1);
  if (asked && *asked != place.size) {
    throw UsageError(cat("this process is rank ", place.rank, " of ", place.size, " that ",
                         place.launcher, " has started, but -n says ", *asked,
                         ". Leave -n out, or start yoke train without ", place.launcher, '.'));
  }
  return place.size;
}

int train(const TrainOptions& options, const Invocation& invocation) {
  auto place = place_from(process_environment());
  int workers = workers_of(options, place);
  auto configuration = Configuration::resolve(options.file, flags_of(options));
  auto file = std::filesystem::absolute(options.file).lexically_normal();
  Assignment assignment{
      .configuration = configuration,
      .folder = RunFolder::named(options.run.empty() ? file.stem().string() : options.run),
      .config_folder = file.parent_path().string(),
      .stop_after = options.stop_after,
      .progress = Progress::style_from(options.progress)};
  if (options.dry_run) {
    if (place.rank == 0) std::cout << describe(assignment, workers) << '\n';
    return 0;
  }

  TrainRequest request{
      .assignment = assignment,
      .origin = {.file = file.string(),
                 .folder = assignment.config_folder,
                 .command = as_typed(invocation.arguments)},
      .resume_command = command_to_resume(invocation.arguments),
      .workers = workers,
      .fresh = options.fresh,
      .json = options.json,
      .grace = std::chrono::duration_cast<Clock::duration>(Seconds(options.grace))};
  return place.size > 1 ? train_as_rank(request) : train_with_own_workers(request);
}

}  // namespace

void add_train(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<TrainOptions>();
  auto* command = program.add_subcommand("train", "Train, or go on with a run");
  command->add_option("FILE", options->file, "The run's configuration, in TOML")->required();
  command->add_option("-n,--workers", options->workers, "Worker processes (default 1)")
      ->check(whole_number(1, 4096));
  command->add_option("--run", options->run,
                      "Name under runs/, or a path (default: the file's name without .toml)");
  command
      ->add_option(
          "--steps", options->steps,
          "Length of the run; overrides train.epochs. A larger one makes a finished run go "
          "on, where the schedule is constant or step")
      ->check(whole_number(1));
  command
      ->add_option("--stop-after", options->stop_after,
                   "Save and end this sitting after so many steps, with exit code 75")
      ->check(whole_number(1));
  command->add_option("--transport", options->transport, "auto, shm or tcp (comm.transport)");
  command->add_option("--topology", options->topology,
                      "auto, full_mesh, tree or ring (comm.topology)");
  command
      ->add_option("--bucket-bytes", options->bucket_bytes,
                   "Bytes of gradient communicated at once (comm.bucket_bytes)")
      ->check(whole_number(1));
  command->add_option("--mesh", options->mesh, "Axes of the ranks; this version has data=N");
  command->add_option("--set", options->set, "section.key=value; any key, any number of times")
      ->take_all()
      ->expected(1);
  command->add_option("--progress", options->progress, "auto, bar, plain, json or none")
      ->capture_default_str();
  command
      ->add_option(
          "--grace", options->grace,
          "Seconds from Ctrl-C or SIGTERM until the workers are killed; 5 at most when one has "
          "failed")
      ->check(seconds())
      ->capture_default_str();
  command->add_flag("--fresh", options->fresh, "Set an old run of that name aside and start anew");
  command->add_flag("--dry-run", options->dry_run, "Show what would be done, and stop");
  command->add_flag("--json", options->json,
                    "Print the report as JSON, and nothing else on stdout");
  command->footer(
      R"(The weights are the same for every -n, transport and bucket size. The same command goes on from
the newest checkpoint. Ctrl-C or SIGTERM saves and ends with 75; a second one ends at once.
Under torchrun, mpirun, srun or yoke launch each process is one worker: leave -n out.

Examples:
  yoke train examples/digits.toml -n 2
  yoke train examples/digits.toml -n 4 --run runs/try-1 --set optimizer.lr=0.05 --set train.batch=128
  yoke train examples/gpt.toml --steps 200 --stop-after 50
  yoke config show examples/digits.toml --resolved     all keys, with their values)");
  command->callback([options, &invocation] { invocation.exit_code = train(*options, invocation); });
}

}  // namespace yoke::cli
