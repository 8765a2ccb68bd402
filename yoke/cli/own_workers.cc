
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/log.h"
#include "yoke/cli/beforehand.h"
#include "yoke/cli/elastic_job.h"
#include "yoke/cli/failure_report.h"
#include "yoke/cli/run_events.h"
#include "yoke/cli/train_request.h"
#include "yoke/net/shm/group.h"
#include "yoke/observe/json_text.h"

namespace yoke::cli {
namespace {

void warn_if_crowded(const TrainRequest& request) {
  auto threads = threads_of(request.assignment);
  auto cores = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  if (request.workers * threads > cores) {
    log_warning(request.workers, " workers with ", threads, " threads share ", cores,
                " cores: the result is the same, but slower than with fewer workers");
  }
}

/// Into failure.json, events.jsonl and torchrun's file.
void file_failure(const RunFolder& folder, const FailureReport& report) {
  try {
    write_file_atomically(folder.failure(), json_text(to_json(report), 2) + "\n");
    note_failure(folder, report.kind, report.rank);
  } catch (const IoError& error) {
    // A full disk may be why the rank failed: its exit code counts, not that of the report.
    log_warning("the failure is not on file: ", error.what());
  }
  auto who = report.rank < 0 ? std::string() : cat("rank ", report.rank, " of ");
  write_elastic_error(cat(who, folder.root().string(), ": ", report.cause,
                          report.last_lines.empty() ? "" : ". " + report.last_lines.back()));
}

FailureReport report_of(const TrainRequest& request, const net::ProcessFailure& failure) {
  auto report = explain(failure, true);
  report.saved = newest_state(request.assignment.folder);
  report.next = request.resume_command;
  return report;
}

void report_failure(const TrainRequest& request, const elastic::AgentOutcome& outcome) {
  const auto& folder = request.assignment.folder;
  net::ProcessFailure nobody{.rank = -1, .exit_code = outcome.exit_code, .last_lines = {}};
  auto report = report_of(request, outcome.failure.value_or(nobody));
  report.kind = outcome.cause;
  if (!outcome.why.empty()) {
    report.cause += cat(report.cause.empty() ? "" : "; ", outcome.why);
    report.exit_code = outcome.exit_code;
  }
  if (outcome.failure) {
    report.log = folder.log_err(report.rank);
    report.on_console = report.rank == 0;
  }
  std::cerr << to_text(report);
  file_failure(folder, report);
}

void check_number(const TrainRequest& request) {
  if (request.workers > net::ShmGroup::kMostRanks && transport_of(request.assignment) != "tcp") {
    throw ConfigError(cat("-n is ", request.workers, ", and shared memory joins ",
                          net::ShmGroup::kMostRanks,
                          " workers of a host at most. Ask for fewer, "
                          "or for comm.transport = \"tcp\"."));
  }
}

}  // namespace

int train_with_own_workers(const TrainRequest& request) {
  const auto& folder = request.assignment.folder;
  check_number(request);
  RunLock lock(folder);
  Beforehand beforehand;
  auto look = [&] { beforehand = look_beforehand(request.assignment, request.workers); };
  // Before an old run is set aside.
  if (request.fresh) look();
  if (beforehand.failure) return beforehand.failure->exit_code;
  if (prepare(request, lock)) {
    log_info(folder.root().string(),
             " is finished; --fresh would start it anew, and a larger "
             "--steps goes on if the schedule does not depend on it");
    show_report(request);
    return kExitOk;
  }
  if (!request.fresh) look();
  if (beforehand.failure) {
    file_failure(folder, report_of(request, *beforehand.failure));
    return beforehand.failure->exit_code;
  }
  warn_if_crowded(request);

  ElasticJob job(request, beforehand.described);
  auto outcome = job.run();
  if (outcome.failure || !outcome.cause.empty()) {
    report_failure(request, outcome);
  } else if (outcome.exit_code == kExitOk || outcome.exit_code == kExitSaved) {
    show_report(request);
  } else {
    auto saved = newest_state(folder);
    std::cerr << "yoke: ended by " << net::signal_name(outcome.stop_signal)
              << " before the state was saved; "
              << (saved.empty() ? "nothing was saved before" : "saved before: " + saved)
              << ".\n  Next: " << request.resume_command << '\n';
  }
  return outcome.exit_code;
}

}  // namespace yoke::cli
