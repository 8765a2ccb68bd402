#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"

namespace yoke::net {

/// The keys and values of a store, in the process that holds them. Thread-safe.
class StoreTable {
 public:
  void set(const std::string& key, const std::string& value);
  std::int64_t add(const std::string& key, std::int64_t amount);
  std::optional<std::string> find(const std::string& key) const;
  /// Waits for the key until the deadline, then throws Timeout.
  std::string get(const std::string& key, Deadline deadline) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<std::string, std::string> values_;  ///< guarded by mutex_
};

[[noreturn]] void throw_key_timeout(const std::string& key, Deadline deadline);

}  // namespace yoke::net
