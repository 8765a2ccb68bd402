#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "yoke/net/place.h"
#include "yoke/net/rendezvous.h"
#include "yoke/net/shm/region.h"
#include "yoke/net/store.h"

namespace yoke {

/// All ranks of one generation of a job, and what they need to reach each other. Cheap to copy.
/// Thread-safe.
class World {
 public:
  /// yoke's launcher, torchrun, mpirun, srun, or alone: see place_from(). Blocks until the
  /// rendezvous is open (Timeout after options.timeout).
  static World from_environment(const net::RendezvousOptions& options = {});
  static World at(const Place& place, const net::RendezvousOptions& options = {});
  /// Ranks as threads of this process, for tests: element r belongs to thread r.
  static std::vector<World> of_threads(int size);

  int rank() const { return place_.rank; }
  int size() const { return place_.size; }
  int local_rank() const { return place_.local_rank; }
  std::uint64_t generation() const { return place_.generation; }
  const Place& place() const { return place_; }
  /// The secret that connections of this job prove to know.
  const std::string& token() const { return token_; }

  net::Store& store() const { return *store_; }
  net::SharedMemory& shared_memory() const { return *shared_memory_; }
  bool ranks_are_threads() const { return shared_memory_->within_one_process(); }

  /// Ends every wait for the others while a communicator of this world is made, here, within
  /// Deadline::kCancelSlice: this generation is over. Communicators that stand have abort().
  void cancel() const { cancelled_->store(true); }
  const std::atomic<bool>* cancelled() const { return cancelled_.get(); }

 private:
  World() = default;
  Place place_;
  std::string token_;
  std::shared_ptr<net::Store> store_;
  std::shared_ptr<net::SharedMemory> shared_memory_;
  std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace yoke
