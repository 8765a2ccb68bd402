#pragma once

#include <sys/types.h>

#include <utility>
#include <vector>

namespace yoke::net {

/// Tells which of some processes have ended, by pidfd: exact even when a process id is used again,
/// and a zombie counts as ended. Needs Linux 5.3.
class PeerWatch {
 public:
  PeerWatch() = default;
  ~PeerWatch();
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  /// False if the process has ended already. Throws ResourceError if the kernel has no pidfd.
  bool add(int rank, pid_t process);
  /// The ranks among the added whose process has ended. One system call.
  std::vector<int> ended() const;

 private:
  std::vector<std::pair<int, int>> peers_;  ///< rank, descriptor
};

}  // namespace yoke::net
