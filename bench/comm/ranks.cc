#include "bench/comm/ranks.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <fstream>
#include <iostream>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/net/shm/wait.h"

namespace yoke::bench {
namespace {

/// A socket that listens on a free port of the loopback, for the rendezvous of the ranks.
int listening_socket(std::uint16_t& port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (socket < 0 || bind(socket, generic, length) != 0 || listen(socket, 64) != 0 ||
      getsockname(socket, generic, &length) != 0) {
    throw IoError("cannot listen on the loopback, so the ranks cannot find each other.");
  }
  port = ntohs(address.sin_port);
  return socket;
}

}  // namespace

int run_ranks(int size, const std::function<int(const World&)>& body) {
  std::uint16_t port = 0;
  const int socket = listening_socket(port);
  std::cout.flush();
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child < 0) throw IoError("cannot fork: there are no processes left.");
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    int code = 1;
    try {
      Place place{.rank = rank, .size = size, .local_rank = rank, .local_size = size};
      place.launcher = "yoke";
      place.master_port = port;
      place.job = cat("bench-", getppid());
      net::RendezvousOptions options;
      if (rank == 0) options.listening_descriptor = socket;
      code = body(World::at(place, options));
    } catch (const std::exception& error) {
      std::cerr << "rank " << rank << ": " << error.what() << "\n";
    }
    std::cout.flush();
    _exit(code);
  }
  close(socket);
  int first = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (first == 0) first = code;
  }
  return first;
}

std::string machine() {
  std::string model = "unknown processor";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) model = line.substr(line.find(':') + 2);
  }
  struct sysinfo memory {};
  sysinfo(&memory);
  utsname kernel{};
  uname(&kernel);
  return cat(net::usable_cores(), " x ", model, ", ", (memory.totalram * memory.mem_unit) >> 30,
             " GiB, ", kernel.sysname, " ", kernel.release);
}

}  // namespace yoke::bench
