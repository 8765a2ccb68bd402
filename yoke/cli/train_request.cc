#include "yoke/cli/train_request.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "yoke/cli/run_report.h"
#include "yoke/observe/json_text.h"

namespace yoke::cli {

namespace {

/// True if there is something to set aside: a folder that holds more than the lock which we have
/// just made.
bool holds_a_run(const RunFolder& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder.root())) {
    if (entry.path() != folder.lock()) return true;
  }
  return false;
}

}  // namespace

bool prepare(const TrainRequest& request, RunLock& lock) {
  const auto& folder = request.assignment.folder;
  bool set_aside = request.fresh && holds_a_run(folder);
  bool finished = prepare_folder(request.assignment, set_aside);
  if (set_aside) lock.renew();
  if (finished) return true;
  folder.create();
  write_origin(folder, request.origin);
  std::filesystem::remove(folder.failure());
  return false;
}

void show_report(const TrainRequest& request) {
  const auto& folder = request.assignment.folder;
  auto report = read_report(folder);
  if (request.json) {
    std::cout << json_text(report, 2) << std::endl;
  } else {
    std::cout << to_text(report, folder, request.resume_command) << std::flush;
  }
}

}  // namespace yoke::cli
