#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "yoke/base/clock.h"

namespace yoke::net {

/// Keys and values that the ranks of one job share while they find each other. Small and slow by
/// design: no payload of training goes through it.
class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits until the key is there. Throws Timeout that names the key.
  virtual std::string get(const std::string& key, Deadline deadline) = 0;
  /// Adds to a counter (0 at first) and returns the new value.
  virtual std::int64_t add(const std::string& key, std::int64_t amount) = 0;
};

/// For ranks that are threads of one process, and for a world of one.
std::shared_ptr<Store> make_memory_store();

}  // namespace yoke::net
