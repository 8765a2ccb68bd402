#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"
#include "yoke/base/log.h"
#include "yoke/cli/beforehand.h"
#include "yoke/cli/failure_report.h"
#include "yoke/cli/run_events.h"
#include "yoke/cli/train_request.h"
#include "yoke/net/shm/group.h"
#include "yoke/net/supervisor.h"
#include "yoke/observe/json_text.h"

namespace yoke::cli {
namespace {

/// The socket on which rank 0 will serve the store of this job: bound before anyone is started, so
/// that no port has to be guessed.
class StoreSocket {
 public:
  StoreSocket() : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (descriptor_ < 0 || ::bind(descriptor_, generic, size) != 0 ||
        ::listen(descriptor_, SOMAXCONN) != 0 || ::getsockname(descriptor_, generic, &size) != 0) {
      std::string reason = std::strerror(errno);
      close();
      throw ResourceError(
          cat("cannot open a port on 127.0.0.1: ", reason,
              ". Workers find each other through it; check the loopback interface."));
    }
    port_ = ntohs(address.sin_port);
  }
  ~StoreSocket() { close(); }
  StoreSocket(const StoreSocket&) = delete;
  StoreSocket& operator=(const StoreSocket&) = delete;

  std::uint16_t port() const { return port_; }
  /// The caller owns it from here.
  int release() {
    int descriptor = descriptor_;
    descriptor_ = -1;
    return descriptor;
  }
  void close() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }

 private:
  int descriptor_;
  std::uint16_t port_ = 0;
};

Place place_of(int rank, int size, std::uint16_t port, const std::string& job) {
  Place place;
  place.rank = place.local_rank = rank;
  place.size = place.local_size = size;
  place.launcher = "yoke";
  place.master_port = port;
  place.job = job;
  return place;
}

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

void report_failure(const TrainRequest& request, const net::ProcessFailure& failure) {
  const auto& folder = request.assignment.folder;
  auto report = report_of(request, failure);
  report.log = folder.log_err(report.rank);
  report.on_console = report.rank == 0;
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

  StoreSocket socket;
  auto token = random_token();
  auto job = cat("yoke-", random_token(12));
  net::SupervisorOptions supervision;
  supervision.stop_grace = request.grace;
  supervision.failure_grace = std::min(supervision.failure_grace, request.grace);
  net::Supervisor supervisor(supervision);
  for (int rank = 0; rank < request.workers; ++rank) {
    net::ProcessSpec spec;
    spec.rank = rank;
    spec.log_out = folder.log_out(rank);
    spec.log_err = folder.log_err(rank);
    spec.console = rank == 0 ? net::ProcessSpec::Console::kRaw : net::ProcessSpec::Console::kNone;
    spec.out_to_stderr = request.json;
    spec.work = [&, rank] {
      heed_stop_signals();
      set_log_prefix(cat("rank ", rank));
      return guarded([&] {
        net::RendezvousOptions rendezvous{.token = token};
        if (rank == 0 && request.workers > 1) {
          rendezvous.listening_descriptor = socket.release();
        } else {
          socket.close();
        }
        auto world = World::at(place_of(rank, request.workers, socket.port(), job), rendezvous);
        return work(request.assignment, world, beforehand.described);
      });
    };
    supervisor.start(spec);
  }
  // If we kept it, a worker would wait for a dead rank 0 to answer.
  socket.close();
  auto outcome = supervisor.run();

  if (outcome.failure) {
    report_failure(request, *outcome.failure);
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
