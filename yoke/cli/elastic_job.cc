#include "yoke/cli/elastic_job.h"

#include <sys/stat.h>

#include <atomic>
#include <filesystem>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/log.h"
#include "yoke/cli/coordinator_file.h"
#include "yoke/elastic/member.h"
#include "yoke/net/shm/region.h"

namespace yoke::cli {

namespace {

Clock::duration span_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
}

net::Descriptor listen_here() {
  try {
    const auto loopback = net::resolve("127.0.0.1", 0, Deadline());
    return net::listen_on(loopback);
  } catch (const CommunicationError& error) {
    throw ResourceError(cat("cannot open a port on 127.0.0.1: ", error.what(),
                            " Workers find each other through it; check the loopback interface."));
  }
}

}  // namespace

ElasticJob::ElasticJob(const TrainRequest& request, std::string described)
    : request_(request),
      described_(std::move(described)),
      job_(cat("yoke-", random_token(12))),
      token_(random_token()),
      listening_(listen_here()),
      address_(net::own_address(listening_.number())),
      host_memory_(net::make_host_memory()) {
  const RunFolder& folder = request_.assignment.folder;
  // What an earlier coordinator journaled is about workers that are gone.
  std::error_code ignored;
  std::filesystem::remove(folder.coordinator_journal(), ignored);
  write_coordinator_file(folder, {.address = address_.text(), .job = job_, .token = token_});
}

ElasticJob::~ElasticJob() {
  const RunFolder& folder = request_.assignment.folder;
  std::error_code ignored;
  std::filesystem::remove(folder.coordinator(), ignored);
  std::filesystem::remove(folder.coordinator_journal(), ignored);
}

elastic::RosterOptions ElasticJob::roster() const {
  const auto& values = elastic_of(request_.assignment);
  return {.workers = request_.workers,
          .min_workers = static_cast<int>(values.min_workers),
          .restarts = static_cast<int>(values.restarts),
          .lease = span_of(values.lease),
          .stuck_factor = values.hang_factor,
          .stuck_floor = span_of(values.hang_timeout)};
}

net::ProcessSpec ElasticJob::coordinator() {
  net::ProcessSpec spec;
  spec.rank = -1;
  spec.console = net::ProcessSpec::Console::kRaw;
  spec.out_to_stderr = true;
  spec.work = [this] {
    set_log_prefix("coordinator");
    return guarded([this] {
      static std::atomic<bool> never{false};
      host_memory_.reset();
      elastic::Coordinator coordinator(std::move(listening_),
                                       {.job = job_,
                                        .token = token_,
                                        .journal = request_.assignment.folder.coordinator_journal(),
                                        .roster = roster()});
      coordinator.serve(never);
      return 0;
    });
  };
  return spec;
}

net::ProcessSpec ElasticJob::worker(elastic::WorkerId id, int slot) {
  const RunFolder& folder = request_.assignment.folder;
  net::ProcessSpec spec;
  spec.rank = slot;
  spec.log_out = folder.log_out(slot);
  spec.log_err = folder.log_err(slot);
  spec.console = slot == 0 ? net::ProcessSpec::Console::kRaw : net::ProcessSpec::Console::kNone;
  spec.out_to_stderr = request_.json;
  spec.work = [this, id, slot] {
    heed_stop_signals();
    set_log_prefix(cat("worker ", slot));
    return guarded([&] {
      listening_.reset();
      elastic::Member member({.coordinator = address_,
                              .job = job_,
                              .token = token_,
                              .worker = id,
                              .lease = roster().lease});
      return work_elastically(request_.assignment, member, host_memory_.number(),
                              id == 0 ? described_ : "");
    });
  };
  return spec;
}

elastic::AgentOutcome ElasticJob::run() {
  elastic::Agent agent(
      {.coordinator = address_,
       .job = job_,
       .token = token_,
       .slots = request_.workers,
       .worker = [this](elastic::WorkerId id, int slot) { return worker(id, slot); },
       .own_coordinator = [this] { return coordinator(); },
       .stop_grace = request_.grace,
       .failure_grace = std::min<Clock::duration>(std::chrono::seconds(5), request_.grace)});
  return agent.run();
}

}  // namespace yoke::cli
