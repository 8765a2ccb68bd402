#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "yoke/net/socket.h"

namespace yoke::test {

/// Hosts that are network namespaces of this machine: each has an interface, eth0, with an address
/// of its own, and all hang on one bridge, in a namespace of its own. What the kernel's TCP does on
/// a bad network can be tried here: lost packets, a cable that is pulled, a slow wire.
///
/// Each namespace is held by a child process that the kernel kills with the thread that made it, so
/// nothing is left however a test ends; nothing is added to the machine's own namespace. Needs root
/// and the `ip` and `tc` programs of iproute2. Make it while there is one thread: it forks.
class NetworkNamespaces {
 public:
  /// Empty when namespaces can be made here, else why not, and what to do: for GTEST_SKIP.
  static std::string why_not();

  /// Throws ResourceError with what `ip` said.
  explicit NetworkNamespaces(int hosts);
  ~NetworkNamespaces();
  NetworkNamespaces(const NetworkNamespaces&) = delete;
  NetworkNamespaces& operator=(const NetworkNamespaces&) = delete;

  /// "10.77.0.1" for host 0.
  static std::string address(int host);
  /// Moves the calling thread there; in a forked child, where one thread is all there is.
  void enter(int host) const;
  /// Runs a program inside and waits for it: its exit code, and what it wrote to stdout and stderr.
  struct Answer {
    int exit_code = -1;
    std::string text{};
  };
  Answer run(int host, const std::vector<std::string>& words) const;

  /// From now on packets of `from` do not arrive at `to`. The other way they do. Nobody is told.
  void cut(int from, int to) const;
  void heal(int from, int to) const;
  /// Pulls the host's cable: its interface loses its carrier.
  void unplug(int host) const;
  void plug(int host) const;
  /// What the host sends is let through at this rate: a token bucket of 32 KiB, and a queue that
  /// holds half a second.
  void shape(int host, std::uint64_t bytes_per_second) const;

 private:
  struct Space {
    pid_t holder = -1;
    net::Descriptor network{};
  };

  static Space make_space();
  void ip(const Space& space, const std::string& arguments) const;
  static Answer run_in(const Space& space, const std::vector<std::string>& words);
  const Space& at(int host) const { return hosts_.at(static_cast<std::size_t>(host)); }
  void release();

  Space bridge_;
  std::vector<Space> hosts_;
};

}  // namespace yoke::test
