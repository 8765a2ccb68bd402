#include "yoke/net/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string_view>

#include "yoke/base/error.h"
#include "yoke/base/exit_code.h"

namespace yoke::net {
namespace {

void say(const std::string& line) {
  [[maybe_unused]] auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

struct Pipe {
  int read = -1;
  int write = -1;

  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw ResourceError(
          cat("cannot open a pipe for a child process: ", std::strerror(errno),
              ". Raise the limit of open files (ulimit -n), or start fewer ranks."));
    }
    read = ends[0];
    write = ends[1];
    ::fcntl(read, F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    if (read >= 0) ::close(read);
    if (write >= 0) ::close(write);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int release_read() {
    int descriptor = read;
    read = -1;
    return descriptor;
  }
};

void set_environment(const std::vector<std::string>& entries) {
  for (const auto& entry : entries) {
    auto equals = entry.find('=');
    ::setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
}

[[noreturn]] void run_program(const std::vector<std::string>& program) {
  std::vector<char*> arguments;
  for (const auto& argument : program) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  // What we ignore would stay ignored in the program.
  for (int signal : {SIGXFSZ, SIGPIPE}) ::signal(signal, SIG_DFL);
  ::execvp(arguments[0], arguments.data());
  int error = errno;
  say(cat("yoke: cannot start ", program[0], ": ", std::strerror(error), "\n"));
  ::_exit(error == ENOENT ? 127 : 126);
}

[[noreturn]] void run_work(const std::function<int()>& work) {
  int code = kExitInternal;
  try {
    code = work();
  } catch (const std::exception& error) {
    say(cat("yoke: ", message_of(error), "\n"));
    code = exit_code_of(error);
  } catch (...) {
    say("yoke: something that is not an exception was thrown\n");
  }
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
  ::_exit(code);
}

[[noreturn]] void run_child(const ProcessSpec& spec, pid_t parent, const sigset_t& mask,
                            std::span<const int> close_in_child, const Pipe& out, const Pipe& err) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have ended before the line above: then nobody would kill this child.
  if (::getppid() != parent) ::_exit(kExitInternal);

  int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(out.write, STDOUT_FILENO);
  ::dup2(err.write, STDERR_FILENO);
  if (nothing > STDERR_FILENO) ::close(nothing);
  for (int descriptor : {out.read, out.write, err.read, err.write}) ::close(descriptor);
  for (int descriptor : close_in_child) ::close(descriptor);

  set_environment(spec.environment);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  if (!spec.program.empty()) run_program(spec.program);
  run_work(spec.work);
}

long counter_in(const std::string& file, std::string_view name) {
  std::ifstream lines(file);
  std::string word;
  long value = 0;
  while (lines >> word >> value) {
    if (word == name) return value;
  }
  return -1;
}

/// The folder of this process's memory cgroup, version 2 or 1; empty when it cannot be seen.
std::vector<std::string> memory_counter_files() {
  std::vector<std::string> files;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    auto first = line.find(':');
    auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (controllers.empty()) files.push_back(cat("/sys/fs/cgroup", path, "/memory.events"));
    if (controllers == "memory") {
      files.push_back(cat("/sys/fs/cgroup/memory", path, "/memory.oom_control"));
    }
  }
  return files;
}

}  // namespace

StartedProcess start_process(const ProcessSpec& spec, const sigset_t& mask,
                             std::span<const int> close_in_child) {
  YOKE_ENSURE(spec.program.empty() == static_cast<bool>(spec.work),
              "a process runs a program or work, not both");
  // What is buffered now would be written by both.
  std::cout.flush();
  std::fflush(nullptr);
  Pipe out;
  Pipe err;
  pid_t parent = ::getpid();
  pid_t pid = ::fork();
  if (pid < 0) {
    throw ResourceError(cat("cannot start the process of rank ", spec.rank, ": ",
                            std::strerror(errno),
                            ". Raise the limit of processes (ulimit -u), or start fewer ranks."));
  }
  if (pid == 0) run_child(spec, parent, mask, close_in_child, out, err);
  // Here as well as in the child, so that the group exists whoever runs first.
  ::setpgid(pid, pid);
  return {.pid = pid, .out = out.release_read(), .err = err.release_read()};
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? cat("SIG", name) : cat("signal ", signal);
}

std::string signal_words(int signal) {
  const char* words = ::sigdescr_np(signal);
  std::string text = words != nullptr ? words : "no description";
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

namespace {

/// 'R', 'S', 'T' ...; 0: there is no such process.
char state_of(pid_t pid) {
  std::ifstream file(cat("/proc/", pid, "/stat"));
  std::string text;
  std::getline(file, text);
  // "pid (name) state ...": the name may hold anything, also ") ".
  auto end = text.rfind(") ");
  return end == std::string::npos || end + 2 >= text.size() ? '\0' : text[end + 2];
}

bool has_pending_kill(pid_t pid) {
  std::ifstream file(cat("/proc/", pid, "/status"));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("SigPnd:") && !line.starts_with("ShdPnd:")) continue;
    const auto mask = std::strtoull(line.substr(line.find('\t') + 1).c_str(), nullptr, 16);
    if ((mask >> (SIGKILL - 1) & 1) != 0) return true;
  }
  return false;
}

}  // namespace

bool is_stopped(pid_t pid) {
  const char state = state_of(pid);
  return state == 'T' || state == 't';
}

bool is_dying(pid_t pid) {
  const char state = state_of(pid);
  return state == 'Z' || state == 'X' || state == '\0' || has_pending_kill(pid);
}

long out_of_memory_kills() {
  for (const auto& file : memory_counter_files()) {
    long kills = counter_in(file, "oom_kill");
    if (kills >= 0) return kills;
  }
  return std::max(counter_in("/proc/vmstat", "oom_kill"), 0L);
}

}  // namespace yoke::net
