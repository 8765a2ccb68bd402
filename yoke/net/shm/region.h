#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "yoke/base/clock.h"
#include "yoke/net/place.h"
#include "yoke/net/store.h"

namespace yoke::net {

/// Memory that several ranks of one host see. Zero at first; pages cost nothing until touched.
/// Anonymous (memfd), so nothing is left when the processes are gone, however they went.
class SharedRegion {
 public:
  virtual ~SharedRegion() = default;
  virtual std::span<std::byte> bytes() = 0;
};

/// Makes regions and opens those of others, by name. Names are unique in a job.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  virtual std::shared_ptr<SharedRegion> create(const std::string& name, std::size_t bytes) = 0;
  virtual std::shared_ptr<SharedRegion> open(const std::string& name, Deadline deadline) = 0;
  /// True when all ranks are threads of this process.
  virtual bool within_one_process() const = 0;
};

/// Between processes: memfd_create, published as "pid:descriptor:bytes" in the store and opened by
/// the others through /proc/PID/fd. Throws IoError that names the peer and what forbids it.
std::shared_ptr<SharedMemory> make_process_shared_memory(std::shared_ptr<Store> store);

/// Between threads: one table, one mapping.
std::shared_ptr<SharedMemory> make_thread_shared_memory();

/// Memory of a host that outlives the workers which use it: an empty memfd, held by the process
/// that starts them. Throws ResourceError.
int make_host_memory();
/// Maps the first `bytes` of it, zero where nobody has written yet; it grows to that size.
std::shared_ptr<SharedRegion> map_host_memory(int descriptor, std::size_t bytes);

/// Equal for two processes that can share memory and see each other's process ids: boot, and the
/// PID, UTS and network namespaces.
std::string host_identity();

}  // namespace yoke::net
