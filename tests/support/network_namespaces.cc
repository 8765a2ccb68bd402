#include "tests/support/network_namespaces.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "yoke/base/error.h"

namespace yoke::test {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool is_installed(const std::string& program) {
  for (const char* folder : {"/usr/sbin/", "/sbin/", "/usr/bin/", "/bin/"}) {
    if (::access((folder + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw ResourceError(cat("pipe2 failed: ", std::strerror(errno), "."));
    }
    read = net::Descriptor(ends[0]);
    write = net::Descriptor(ends[1]);
  }
  net::Descriptor read, write;
};

}  // namespace

std::string NetworkNamespaces::why_not() {
  for (const char* program : {"ip", "tc"}) {
    if (!is_installed(program)) {
      return cat("there is no program ", program, ": install iproute2.");
    }
  }
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::unshare(CLONE_NEWNET) == 0 ? 0 : errno);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return cat("this process may not make network namespaces (",
             std::strerror(WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD),
             "): run the tests as root.");
}

NetworkNamespaces::Space NetworkNamespaces::make_space() {
  Pipe ready;
  Space space;
  const pid_t parent = ::getpid();
  space.holder = ::fork();
  if (space.holder == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::unshare(CLONE_NEWNET) != 0) ::_exit(1);
    [[maybe_unused]] auto written = ::write(ready.write.number(), "", 1);
    while (::getppid() == parent) ::pause();
    ::_exit(0);
  }
  ready.write.reset();
  char byte = 0;
  const bool made = space.holder > 0 && ::read(ready.read.number(), &byte, 1) == 1;
  if (made) {
    const auto path = cat("/proc/", space.holder, "/ns/net");
    space.network = net::Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  }
  return space;
}

NetworkNamespaces::NetworkNamespaces(int hosts) {
  try {
    bridge_ = make_space();
    for (int host = 0; host < hosts; ++host) hosts_.push_back(make_space());
    ip(bridge_, "link add bridge type bridge");
    ip(bridge_, "link set bridge up");
    for (int host = 0; host < hosts; ++host) {
      const auto port = cat("port", host);
      ip(bridge_, cat("link add ", port, " type veth peer name eth0 netns ", at(host).holder));
      ip(bridge_, cat("link set ", port, " master bridge up"));
      ip(at(host), "link set lo up");
      ip(at(host), cat("addr add ", address(host), "/24 dev eth0"));
      ip(at(host), "link set eth0 up");
      // What comes in is asked for in the table of local addresses first, unless a rule stands
      // before it: cut() puts one there.
      ip(at(host), "rule add pref 1000 lookup local");
      ip(at(host), "rule del pref 0");
    }
  } catch (...) {
    release();
    throw;
  }
}

NetworkNamespaces::~NetworkNamespaces() {
  release();
}

void NetworkNamespaces::release() {
  hosts_.push_back(std::move(bridge_));
  for (auto& space : hosts_) {
    if (space.holder <= 0) continue;
    ::kill(space.holder, SIGKILL);
    ::waitpid(space.holder, nullptr, 0);
  }
  hosts_.clear();
}

std::string NetworkNamespaces::address(int host) {
  return cat("10.77.", host / 250, ".", host % 250 + 1);
}

void NetworkNamespaces::enter(int host) const {
  if (::setns(at(host).network.number(), CLONE_NEWNET) != 0) {
    throw ResourceError(cat("setns failed for host ", host, ": ", std::strerror(errno), "."));
  }
}

NetworkNamespaces::Answer NetworkNamespaces::run(int host,
                                                 const std::vector<std::string>& words) const {
  return run_in(at(host), words);
}

NetworkNamespaces::Answer NetworkNamespaces::run_in(const Space& space,
                                                    const std::vector<std::string>& words) {
  Pipe output;
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(output.write.number(), STDOUT_FILENO);
    ::dup2(output.write.number(), STDERR_FILENO);
    if (::setns(space.network.number(), CLONE_NEWNET) != 0) ::_exit(126);
    std::vector<char*> arguments;
    for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  output.write.reset();
  Answer answer;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(output.read.number(), buffer, sizeof buffer)) > 0;) {
    answer.text.append(buffer, static_cast<std::size_t>(got));
  }
  int status = 0;
  if (child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status)) {
    answer.exit_code = WEXITSTATUS(status);
  }
  return answer;
}

void NetworkNamespaces::ip(const Space& space, const std::string& arguments) const {
  const auto answer = run_in(space, words_of("ip " + arguments));
  if (answer.exit_code != 0) {
    throw ResourceError(
        cat("ip ", arguments, " failed with ", answer.exit_code, ": ", answer.text));
  }
}

void NetworkNamespaces::cut(int from, int to) const {
  // Dropped where it arrives, without a word: no program and no module of a packet filter is
  // needed.
  ip(at(to), cat("rule add pref ", 100 + from, " from ", address(from), " blackhole"));
}

void NetworkNamespaces::heal(int from, int to) const {
  ip(at(to), cat("rule del pref ", 100 + from));
}

void NetworkNamespaces::unplug(int host) const {
  ip(bridge_, cat("link set port", host, " down"));
}

void NetworkNamespaces::plug(int host) const {
  ip(bridge_, cat("link set port", host, " up"));
}

void NetworkNamespaces::shape(int host, std::uint64_t bytes_per_second) const {
  const auto answer =
      run(host, words_of(cat("tc qdisc replace dev eth0 root tbf rate ", 8 * bytes_per_second,
                             "bit burst 32kb latency 500ms")));
  if (answer.exit_code != 0) {
    throw ResourceError(cat("tc failed with ", answer.exit_code, ": ", answer.text));
  }
}

}  // namespace yoke::test
