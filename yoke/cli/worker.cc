#include "yoke/cli/worker.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "yoke/base/error.h"
#include "yoke/base/exit_code.h"
#include "yoke/base/files.h"
#include "yoke/base/log.h"
#include "yoke/cli/command_line.h"
#include "yoke/observe/json_text.h"
#include "yoke/tensor/worker_setup.h"
#include "yoke/train/run.h"

namespace yoke::cli {
namespace {

/// A rank that is asked to stop while it waits for others, or loads, has so long to begin its first
/// step: there is nothing of this sitting yet that could be saved.
constexpr unsigned kSecondsToBegin = 3;

// The globals of the program: a signal handler can reach nothing else.
std::atomic<bool> stop_requested{false};
std::atomic<bool> steps_have_begun{false};
std::atomic<int> stop_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

extern "C" void on_stop_signal(int signal) {
  bool again = stop_requested.exchange(true);
  if (again && signal != SIGUSR1) ::_exit(128 + signal);
  stop_signal.store(signal);
  if (!steps_have_begun) ::alarm(kSecondsToBegin);
}

extern "C" void on_alarm(int) {
  if (!steps_have_begun) ::_exit(128 + stop_signal);
}

void note_rank(const RunFolder& folder, const World& world) {
  nlohmann::json content = {{"rank", world.rank()},
                            {"pid", ::getpid()},
                            {"host", host_name()},
                            {"generation", world.generation()}};
  // Not synced: it is about processes, which a power cut ends too, and a new generation waits for
  // it.
  const auto file = folder.rank_file(world.rank());
  const auto fresh = std::filesystem::path(cat(file.string(), ".", ::getpid()));
  std::ofstream(fresh) << json_text(content) << "\n";
  std::error_code error;
  std::filesystem::rename(fresh, file, error);
  if (error) throw IoError(cat("cannot write ", file.string(), ": ", error.message(), "."));
}

}  // namespace

bool prepare_folder(const Assignment& assignment, bool fresh) {
  return train::prepare_folder(assignment.folder, assignment.configuration.tree(), fresh) ==
         train::Prepared::kFinished;
}

std::string describe(const Assignment& assignment, int workers) {
  tensor::set_up_worker(threads_of(assignment));
  return train::describe(assignment.configuration.values(), workers,
                         model::Registry::with_built_in(), assignment.config_folder);
}

std::int64_t threads_of(const Assignment& assignment) {
  return assignment.configuration.values().train.threads;
}

ElasticValues elastic_of(const Assignment& assignment) {
  const auto& e = assignment.configuration.values().elastic;
  return {e.restarts, e.min_workers, e.lease, e.hang_timeout, e.hang_factor};
}

std::string transport_of(const Assignment& assignment) {
  return assignment.configuration.values().comm.transport;
}

void heed_stop_signals() {
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    struct sigaction before {};
    ::sigaction(signal, &action, &before);
    if (before.sa_handler == SIG_IGN) ::sigaction(signal, &before, nullptr);
  }
  action.sa_handler = on_alarm;
  ::sigaction(SIGALRM, &action, nullptr);
}

namespace {

train::RunOptions options_of(const Assignment& assignment) {
  train::RunOptions options;
  options.folder = assignment.folder;
  options.config_folder = assignment.config_folder;
  options.stop_after = assignment.stop_after;
  options.stop_requested = &stop_requested;
  // Not before: this may turn out to be a rank of another job.
  options.on_start = [folder = assignment.folder](const World& world) {
    note_rank(folder, world);
    set_log_prefix(cat("rank ", world.rank()));
    steps_have_begun = true;
  };
  return options;
}

}  // namespace

int work(const Assignment& assignment, const World& world, const std::string& described) {
  const auto& values = assignment.configuration.values();
  auto setup = tensor::set_up_worker(values.train.threads);
  auto options = options_of(assignment);
  if (world.rank() == 0) {
    options.progress = assignment.progress;
    std::cerr << described << "\n";
    log_info(setup);
  }
  auto report = train::run(values, world, options, model::Registry::with_built_in());
  return report.status == "finished" ? kExitOk : kExitSaved;
}

int work_elastically(const Assignment& assignment, elastic::Membership& membership, int host_memory,
                     const std::string& described) {
  auto setup = tensor::set_up_worker(assignment.configuration.values().train.threads);
  if (!described.empty()) {
    std::cerr << described << "\n";
    log_info(setup);
  }
  auto options = options_of(assignment);
  options.progress = assignment.progress;
  options.host_memory = host_memory;
  auto report = train::run(assignment.configuration.values(), membership, options,
                           model::Registry::with_built_in());
  if (report.status == "left") return stop_requested ? kExitSaved : kExitOk;
  return report.status == "finished" ? kExitOk : kExitSaved;
}

int guarded(const std::function<int()>& task,
            const std::function<void(const std::string&)>& on_error) {
  std::string message;
  int code = kExitFailed;
  try {
    return task();
  } catch (const std::exception& error) {
    message = message_of(error);
    code = exit_code_of(error);
  }
  std::cerr << "yoke: " << message << std::endl;
  if (on_error) on_error(message);
  return code;
}

}  // namespace yoke::cli
