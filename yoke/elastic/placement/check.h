#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "yoke/elastic/placement/policy.h"

namespace yoke::elastic {

/// Throws ConfigError unless there are workers, and all their numbers are finite and at least 0.
void check_workers(const std::string& policy, std::int64_t leaves, std::span<const Worker> workers);

/// The sum of one number over the workers. Throws ConfigError when it is 0: nobody would get
/// anything. `what`: its name, for the message.
double check_some(const std::string& policy, const std::string& what,
                  std::span<const Worker> workers, double Worker::*number);

}  // namespace yoke::elastic
