#include "yoke/cluster/try_machine.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/net/socket.h"

namespace yoke::cluster {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kMark = 0x796f6b65;
constexpr std::size_t kDiskBytes = std::size_t{16} << 20;
constexpr std::size_t kDiskPiece = std::size_t{1} << 20;
constexpr auto kDiskLimit = 5s;

std::string reason() {
  return std::strerror(errno);
}

net::Descriptor make_memory(std::string& problem) {
  net::Descriptor memory(::memfd_create("yoke doctor", MFD_CLOEXEC));
  if (!memory) {
    problem = cat("memfd_create failed: ", reason());
  } else if (::ftruncate(memory.number(), 4096) != 0 ||
             ::pwrite(memory.number(), &kMark, sizeof kMark, 0) != sizeof kMark) {
    problem = cat("memory of memfd_create cannot be written: ", reason());
  }
  return memory;
}

/// In a process of its own: opens the other's memory and reads the mark. The exit code is errno, or
/// 255 for other content.
[[noreturn]] void read_mark(const std::string& path) {
  const int memory = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (memory < 0) ::_exit(errno);
  void* mapped = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (mapped == MAP_FAILED) ::_exit(errno);
  ::_exit(*static_cast<std::uint32_t*>(mapped) == kMark ? 0 : 255);
}

/// Ends with the process that has made it.
struct Child {
  explicit Child(pid_t pid) : pid(pid) {}
  ~Child() {
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  int wait() {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    pid = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
  }
  pid_t pid;
};

std::string default_interface() {
  std::ifstream routes("/proc/net/route");
  std::string line;
  std::getline(routes, line);
  while (std::getline(routes, line)) {
    std::istringstream words(line);
    std::string name, destination;
    if (words >> name >> destination && destination == "00000000") return name;
  }
  return {};
}

std::string try_loopback() {
  try {
    const auto deadline = Deadline::after(5s);
    const auto listening = net::listen_on(net::resolve("127.0.0.1", 0, deadline));
    const auto address = net::own_address(listening.number());
    const auto caller = net::start_connecting(address);
    if (!net::wait_for(listening.number(), POLLIN, deadline)) {
      return cat("a connection to ", address.text(), " did not come about within 5 s");
    }
    const auto answering = net::accept_from(listening.number());
    std::byte byte{42}, got{};
    if (::send(answering.number(), &byte, 1, MSG_NOSIGNAL) != 1 ||
        !net::wait_for(caller.number(), POLLIN, deadline) ||
        ::recv(caller.number(), &got, 1, 0) != 1 || got != byte) {
      return cat("a byte to ", address.text(), " did not arrive within 5 s");
    }
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

net::Descriptor nameless_file(const std::string& folder) {
  net::Descriptor file(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (file) return file;
  // Not every file system has them.
  std::string name = folder + "/.yoke-doctor-XXXXXX";
  net::Descriptor named(::mkostemp(name.data(), O_CLOEXEC));
  if (named) ::unlink(name.c_str());
  return named;
}

}  // namespace

std::string try_memfd() {
  std::string problem;
  make_memory(problem);
  return problem;
}

std::string try_memory_of_a_peer() {
  std::string problem;
  // Close-on-exec of the memory does not matter to a fork: the owner's copy is what is opened.
  const auto memory = make_memory(problem);
  if (!problem.empty()) return {};
  const pid_t parent = ::getpid();
  const Child owner(::fork());
  if (owner.pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (::getppid() == parent) ::pause();
    ::_exit(0);
  }
  if (owner.pid < 0) return cat("no process can be started: ", reason());
  const auto path = cat("/proc/", owner.pid, "/fd/", memory.number());
  Child opener(::fork());
  if (opener.pid == 0) read_mark(path);
  if (opener.pid < 0) return cat("no second process can be started: ", reason());
  const int code = opener.wait();
  if (code == 0) return {};
  return cat("a process cannot open the memory of another at ", path, ": ",
             code == 255 ? "there is something else" : std::strerror(code));
}

MachineFacts::Network try_network() {
  MachineFacts::Network network{
      .loopback_problem = try_loopback(), .interface = default_interface(), .address = {}};
  if (network.interface.empty()) return network;
  try {
    // A documentation address: nothing is sent, the kernel only says which way it would go.
    const auto remote = net::resolve("192.0.2.1", 0, Deadline::after(1s));
    network.address = net::route_to(remote).host();
  } catch (const Error& error) {
    network.address = cat("without an address: ", error.what());
  }
  return network;
}

MachineFacts::Clocks watch_clocks() {
  const auto wall = std::chrono::system_clock::now();
  const auto steady = Clock::now();
  std::this_thread::sleep_for(100ms);
  const auto wall_passed = Seconds(std::chrono::system_clock::now() - wall).count();
  const auto passed = Seconds(Clock::now() - steady).count();
  MachineFacts::Clocks clocks{.drift = wall_passed - passed, .watched = passed, .synchronized = {}};
  timex state{};
  if (::adjtimex(&state) >= 0) clocks.synchronized = (state.status & STA_UNSYNC) == 0;
  return clocks;
}

MachineFacts::Disk try_disk() {
  std::error_code error;
  MachineFacts::Disk disk{.folder = std::filesystem::current_path(error), .problem = {}};
  const auto fail = [&](const std::string& what) {
    disk.problem = cat("cannot ", what, " a file in ", disk.folder, ": ", reason());
    return disk;
  };
  const auto file = nameless_file(".");
  if (!file) return fail("make");
  struct statvfs status {};
  if (::fstatvfs(file.number(), &status) == 0) {
    disk.free = static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
  }
  const std::vector<std::byte> piece(kDiskPiece, std::byte{0x5a});
  const auto start = Clock::now();
  while (disk.written < kDiskBytes && Clock::now() - start < kDiskLimit) {
    const auto more = ::write(file.number(), piece.data(), piece.size());
    if (more < 0) return fail("write");
    disk.written += static_cast<std::uint64_t>(more);
  }
  if (::fsync(file.number()) != 0) return fail("sync");
  disk.seconds = Seconds(Clock::now() - start).count();
  return disk;
}

}  // namespace yoke::cluster
