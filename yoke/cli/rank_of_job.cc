#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "yoke/base/error.h"
#include "yoke/base/exit_code.h"
#include "yoke/base/log.h"
#include "yoke/cli/failure_report.h"
#include "yoke/cli/train_request.h"

namespace yoke::cli {
namespace {

constexpr const char* kPrepared = "yoke train/prepared";
constexpr auto kPrepareTimeout = std::chrono::minutes(10);

/// Rank 0 checks what is to be trained and prepares the folder, the others wait for its word.
/// Returns true if there is something left to train, which `described` then says.
bool agree_on_folder(const TrainRequest& request, const World& world, std::optional<RunLock>& lock,
                     std::string& described) {
  if (world.rank() != 0) {
    auto word = world.store().get(kPrepared, Deadline::after(kPrepareTimeout));
    if (word == "failed") {
      throw CommunicationError("rank 0 could not prepare the run's folder; its message says why.");
    }
    return word == "train";
  }
  try {
    lock.emplace(request.assignment.folder);
    auto look = [&] { described = describe(request.assignment, world.size()); };
    // Before an old run is set aside.
    if (request.fresh) look();
    bool finished = prepare(request, *lock);
    if (!finished && !request.fresh) look();
    world.store().set(kPrepared, finished ? "finished" : "train");
    return !finished;
  } catch (...) {
    world.store().set(kPrepared, "failed");
    throw;
  }
}

}  // namespace

int train_as_rank(const TrainRequest& request) {
  heed_stop_signals();
  return guarded(
      [&] {
        auto world = World::from_environment();
        set_log_prefix(cat("rank ", world.rank()));
        std::optional<RunLock> lock;
        std::string described;
        int code = agree_on_folder(request, world, lock, described)
                       ? work(request.assignment, world, described)
                       : kExitOk;
        if (world.rank() == 0) show_report(request);
        return code;
      },
      [](const std::string& message) { write_elastic_error(message); });
}

}  // namespace yoke::cli
