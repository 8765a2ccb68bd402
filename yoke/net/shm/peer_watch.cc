#include "yoke/net/shm/peer_watch.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "yoke/base/error.h"

namespace yoke::net {

PeerWatch::~PeerWatch() {
  for (const auto& [rank, descriptor] : peers_) close(descriptor);
}

bool PeerWatch::add(int rank, pid_t process) {
  const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  if (descriptor < 0 && errno == ESRCH) return false;
  if (descriptor < 0) {
    throw ResourceError(cat(
        "cannot watch process ", process, " of rank ", rank, ": pidfd_open: ", std::strerror(errno),
        ". Shared memory between ranks needs Linux 5.3 or newer; use transport = \"tcp\"."));
  }
  peers_.emplace_back(rank, descriptor);
  return true;
}

std::vector<int> PeerWatch::ended() const {
  std::vector<pollfd> polled;
  polled.reserve(peers_.size());
  for (const auto& [rank, descriptor] : peers_)
    polled.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
  std::vector<int> ended;
  if (poll(polled.data(), polled.size(), 0) <= 0) return ended;
  for (std::size_t i = 0; i < polled.size(); ++i) {
    if (polled[i].revents != 0) ended.push_back(peers_[i].first);
  }
  return ended;
}

}  // namespace yoke::net
