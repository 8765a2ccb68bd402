#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/exit_code.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"
#include "yoke/base/log.h"
#include "yoke/base/run_folder.h"
#include "yoke/cli/command_line.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/failure_report.h"
#include "yoke/cli/numbers.h"
#include "yoke/net/supervisor.h"

namespace yoke::cli {
namespace {

struct LaunchOptions {
  int ranks = 1;
  int threads = 1;
  double grace = 30;
  std::string log_folder;
  std::vector<int> shown_ranks;
  std::vector<std::string> program;
};

/// A port that nobody uses now. It is left unbound: rank 0 of the program opens its own store
/// there.
std::uint16_t free_port() {
  int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  bool found = descriptor >= 0 && ::bind(descriptor, generic, size) == 0 &&
               ::getsockname(descriptor, generic, &size) == 0;
  std::string reason = std::strerror(errno);
  if (descriptor >= 0) ::close(descriptor);
  if (!found)
    throw ResourceError(cat("cannot find a free port: ", reason, ". Set MASTER_PORT yourself."));
  return ntohs(address.sin_port);
}

/// What torchrun sets, for one rank of one host.
std::vector<std::string> environment_of(int rank, const LaunchOptions& options, std::uint16_t port,
                                        const std::string& job, const std::string& token,
                                        const std::filesystem::path& error_file) {
  auto size = std::to_string(options.ranks);
  auto number = std::to_string(rank);
  auto threads = std::to_string(options.threads);
  return {"RANK=" + number, "WORLD_SIZE=" + size, "LOCAL_RANK=" + number,
          "LOCAL_WORLD_SIZE=" + size, "GROUP_RANK=0", "GROUP_WORLD_SIZE=1", "NODE_RANK=0",
          "ROLE_NAME=default", "ROLE_RANK=" + number, "ROLE_WORLD_SIZE=" + size,
          "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + std::to_string(port),
          "TORCHELASTIC_RUN_ID=" + job, "TORCHELASTIC_RESTART_COUNT=0",
          "TORCHELASTIC_MAX_RESTARTS=0",
          // Rank 0 serves the store itself; we have none.
          "TORCHELASTIC_USE_AGENT_STORE=False", "TORCHELASTIC_ERROR_FILE=" + error_file.string(),
          "OMP_NUM_THREADS=" + threads, "MKL_NUM_THREADS=" + threads,
          "OPENBLAS_NUM_THREADS=" + threads, "YOKE_TOKEN=" + token};
}

void check_program(const std::vector<std::string>& program) {
  if (program.empty()) {
    throw UsageError("launch needs a program: yoke launch -n 4 -- PROGRAM ARGUMENTS...");
  }
  const auto& name = program.front();
  auto executable = [](const std::filesystem::path& file) {
    return ::access(file.c_str(), X_OK) == 0 && !std::filesystem::is_directory(file);
  };
  if (name.find('/') != std::string::npos) {
    if (executable(name)) return;
    throw UsageError(cat("there is no program ", name, ", or it cannot be executed."));
  }
  const char* path = std::getenv("PATH");
  std::string folders = path != nullptr ? path : "/bin:/usr/bin";
  for (std::size_t start = 0; start <= folders.size();) {
    auto end = std::min(folders.find(':', start), folders.size());
    auto folder = folders.substr(start, end - start);
    if (executable(std::filesystem::path(folder.empty() ? "." : folder) / name)) return;
    start = end + 1;
  }
  throw UsageError(cat("there is no program \"", name,
                       "\" in PATH. For one in this folder, write ./", name, '.'));
}

void check_ranks(const LaunchOptions& options) {
  for (int rank : options.shown_ranks) {
    if (rank >= options.ranks) {
      throw UsageError(cat("--log-ranks names rank ", rank, ", but there are ", options.ranks,
                           " (0 to ", options.ranks - 1, ")."));
    }
  }
}

int launch(const LaunchOptions& options, const Invocation& invocation) {
  check_program(options.program);
  check_ranks(options);
  net::SupervisorOptions supervision;
  supervision.stop_grace = std::chrono::duration_cast<Clock::duration>(Seconds(options.grace));
  supervision.failure_grace = supervision.stop_grace;
  // Removed last, when there are descriptors again; made when no signal ends us where we stand.
  std::optional<TemporaryFolder> errors;
  net::Supervisor supervisor(supervision);
  errors.emplace("yoke-launch");
  auto job = cat("yoke-", random_token(12));
  auto token = random_token();
  auto port = free_port();

  unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  if (static_cast<unsigned>(options.ranks * options.threads) > cores) {
    log_warning(options.ranks, " ranks with ", options.threads, " threads share ", cores, " cores");
  }
  log_info("launch: ", options.ranks, " ranks, ", options.threads,
           " threads each (OMP_NUM_THREADS), MASTER_PORT=", port);

  // Logs of the same layout as a run's.
  std::filesystem::path log_folder = options.log_folder;
  auto log_of = [&](int rank, bool error) -> std::filesystem::path {
    if (log_folder.empty()) return {};
    RunFolder layout(log_folder);
    return log_folder / (error ? layout.log_err(rank) : layout.log_out(rank)).filename();
  };
  if (!log_folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(log_folder, error);
    if (error)
      throw IoError(cat("cannot make ", options.log_folder, ": ", error.message(),
                        ". Choose another --log-dir."));
  }

  auto error_file = [&](int rank) { return errors->path() / cat("rank-", rank, ".json"); };
  for (int rank = 0; rank < options.ranks; ++rank) {
    const auto& shown = options.shown_ranks;
    net::ProcessSpec spec;
    spec.rank = rank;
    spec.program = options.program;
    spec.environment = environment_of(rank, options, port, job, token, error_file(rank));
    spec.log_out = log_of(rank, false);
    spec.log_err = log_of(rank, true);
    spec.console = shown.empty() || std::count(shown.begin(), shown.end(), rank) > 0
                       ? net::ProcessSpec::Console::kLabelled
                       : net::ProcessSpec::Console::kNone;
    supervisor.start(spec);
  }
  auto outcome = supervisor.run();
  if (outcome.stdout_error != 0) {
    // Whoever read our output wanted no more of it: that needs no words.
    if (outcome.stdout_error == EPIPE &&
        (outcome.exit_code == kExitOk || outcome.exit_code == kExitBrokenPipe)) {
      return kExitBrokenPipe;
    }
    log_warning("cannot write what the ranks print to stdout: ",
                std::strerror(outcome.stdout_error), "; what came after is lost");
    if (outcome.exit_code == kExitOk) outcome.exit_code = kExitIo;
  }
  if (outcome.failure) {
    auto failure = *outcome.failure;
    if (auto message = read_elastic_error(error_file(failure.rank))) {
      failure.last_lines.push_back(*message);
    }
    auto report = explain(failure, false);
    report.log = log_of(report.rank, true);
    report.next = as_typed(invocation.arguments);
    std::cerr << to_text(report);
    write_elastic_error(cat("rank ", report.rank, ": ", report.cause));
  }
  return outcome.exit_code;
}

}  // namespace

void add_launch(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<LaunchOptions>();
  auto* command = program.add_subcommand(
      "launch", "Start any program on several processes, with the variables that torchrun sets");
  command->add_option("-n,--ranks", options->ranks, "How many processes")
      ->check(whole_number(1, 4096))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "OMP_NUM_THREADS of each")
      ->check(whole_number(1, 1024))
      ->capture_default_str();
  command->add_option("--log-dir", options->log_folder,
                      "Folder for rank-0003.out and rank-0003.err; without it there are no files");
  command
      ->add_option("--log-ranks", options->shown_ranks,
                   "Ranks to show on the console, as 0,2; without it all are shown")
      ->delimiter(',')
      ->check(whole_number(0));
  command
      ->add_option(
          "--grace", options->grace,
          "Seconds from the first Ctrl-C or SIGTERM, or from SIGTERM for the others when one "
          "rank has failed, until the ranks are killed")
      ->check(seconds())
      ->capture_default_str();
  command->add_option("program", options->program,
                      "The program; its own flags need the -- before it");
  command->footer(
      R"(Each process gets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT (a free one)
and what else torchrun sets; yoke::World::from_environment() and torch.distributed read them. If one fails,
the others are ended, it is named, and its exit code is ours.

Examples:
  yoke launch -n 4 -- ./my_program --its-own-flag
  yoke launch -n 2 --log-dir logs --log-ranks 0 -- python3 train.py
  yoke launch -n 2 -- sh -c 'echo "I am $RANK of $WORLD_SIZE"')");
  command->callback([options, &invocation] {
    if (!invocation.program.empty()) {
      if (!options->program.empty()) {
        throw UsageError(cat("launch does not know what to do with ", options->program.front(),
                             " before the --."));
      }
      options->program = invocation.program;
    }
    invocation.exit_code = launch(*options, invocation);
  });
}

}  // namespace yoke::cli
