#include "yoke/elastic/placement/check.h"

#include <cmath>

#include "yoke/base/error.h"

namespace yoke::elastic {

void check_workers(const std::string& policy, std::int64_t leaves,
                   std::span<const Worker> workers) {
  YOKE_ENSURE(leaves >= 0, leaves, " leaves to place.");
  if (workers.empty()) {
    throw ConfigError(cat("placement \"", policy, "\": there is no worker to place leaves on."));
  }
  for (std::size_t i = 0; i < workers.size(); ++i) {
    for (const double number : {workers[i].weight, workers[i].speed, workers[i].load}) {
      if (std::isfinite(number) && number >= 0) continue;
      throw ConfigError(cat("placement \"", policy, "\": worker ", i, " has weight ",
                            workers[i].weight, ", speed ", workers[i].speed, " and load ",
                            workers[i].load, "; each is a finite number of at least 0."));
    }
  }
}

double check_some(const std::string& policy, const std::string& what,
                  std::span<const Worker> workers, double Worker::*number) {
  double total = 0;
  for (const Worker& worker : workers) total += worker.*number;
  if (total <= 0) {
    throw ConfigError(cat("placement \"", policy, "\": the ", what, " of all ", workers.size(),
                          " workers is 0. At least one worker needs a ", what, " above 0."));
  }
  return total;
}

}  // namespace yoke::elastic
