#include "yoke/net/children.h"

#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "yoke/base/error.h"

namespace yoke::net {

Children::Children() : out_(STDOUT_FILENO), err_(STDERR_FILENO) {
  // A parent that ignores SIGCHLD hands that on, and then nobody could wait for a child.
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &standard, nullptr);
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGCHLD);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1}) {
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    // nohup, and shells for what they start in the background, want these ignored.
    if (now.sa_handler != SIG_IGN) sigaddset(&watched, signal);
  }
  ::sigprocmask(SIG_BLOCK, &watched, &mask_before_);
  signals_ = ::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) {
    int error = errno;
    ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
    throw ResourceError(cat("cannot watch for signals: ", std::strerror(error),
                            ". Raise the limit of open files (ulimit -n)."));
  }
}

Children::~Children() {
  pass_on(SIGKILL);
  for (auto& child : children_) {
    if (child->running) ::waitpid(child->pid, nullptr, 0);
  }
  ::close(signals_);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

Children::Child& Children::start(const ProcessSpec& spec) {
  auto started = start_process(spec, mask_before_, descriptors());
  auto child = std::make_unique<Child>();
  child->rank = spec.rank;
  child->pid = started.pid;
  children_.push_back(std::move(child));
  auto& added = *children_.back();
  bool shown = spec.console != ProcessSpec::Console::kNone;
  auto label = cat('[', spec.rank, "] ");
  auto* out = shown ? (spec.out_to_stderr ? &err_ : &out_) : nullptr;
  auto* err = shown ? &err_ : nullptr;
  added.err = std::make_unique<ProcessOutput>(started.err, spec.log_err, err, spec.console, label,
                                              &added.last);
  added.out = std::make_unique<ProcessOutput>(started.out, spec.log_out, out, spec.console, label,
                                              &added.last);
  return added;
}

std::vector<int> Children::descriptors() const {
  std::vector<int> all{signals_};
  for (const auto& child : children_) {
    for (const auto* output : {child->out.get(), child->err.get()}) {
      if (output == nullptr) continue;
      if (output->open()) all.push_back(output->descriptor());
      if (output->log_descriptor() >= 0) all.push_back(output->log_descriptor());
    }
  }
  return all;
}

bool Children::anyone_runs() const {
  return std::any_of(children_.begin(), children_.end(),
                     [](const auto& child) { return child->running; });
}

void Children::forget_ended() {
  std::erase_if(children_, [](const auto& child) { return !child->running; });
}

void Children::wait(std::span<pollfd> others, std::optional<Deadline> until) {
  std::vector<pollfd> watched{{.fd = signals_, .events = POLLIN, .revents = 0}};
  watched.insert(watched.end(), others.begin(), others.end());
  std::vector<ProcessOutput*> outputs;
  std::vector<ConsoleQueue*> consoles;
  for (auto& child : children_) {
    for (auto* output : {child->out.get(), child->err.get()}) {
      if (!output->wants_reading()) continue;
      outputs.push_back(output);
      watched.push_back({.fd = output->descriptor(), .events = POLLIN, .revents = 0});
    }
  }
  for (auto* console : {&out_, &err_}) {
    if (console->empty()) continue;
    consoles.push_back(console);
    watched.push_back({.fd = console->descriptor(), .events = POLLOUT, .revents = 0});
  }

  int timeout = -1;
  if (until) {
    timeout = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(until->left()).count());
  }
  const bool some = ::poll(watched.data(), watched.size(), timeout) > 0;
  std::size_t next = 1;
  for (auto& other : others) other.revents = some ? watched[next].revents : short{0}, ++next;
  if (!some) return;
  for (auto* output : outputs) {
    if (watched[next++].revents != 0) output->read_some();
  }
  for (auto* console : consoles) {
    if (watched[next++].revents != 0) console->write_some();
  }
}

std::vector<int> Children::take_signals() {
  std::vector<int> all;
  signalfd_siginfo info{};
  while (::read(signals_, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo != SIGCHLD) all.push_back(static_cast<int>(info.ssi_signo));
  }
  return all;
}

void Children::pass_on(int signal) {
  for (auto& child : children_) {
    if (!child->running) continue;
    child->told_to_end = true;
    child->signal_group(signal);
  }
}

std::vector<std::pair<Children::Child*, ProcessEnd>> Children::reap(int stop_signal) {
  std::vector<std::pair<Child*, ProcessEnd>> found;
  for (auto& child : children_) {
    if (!child->running) continue;
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(child->pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0) {
      continue;
    }
    // Before it is reaped: as long as it is a zombie, nobody else can be given its group's number.
    child->signal_group(SIGKILL);
    ::waitpid(child->pid, nullptr, 0);
    child->running = false;
    ProcessEnd end{
        .rank = child->rank, .pid = child->pid, .exit_code = info.si_status, .signal = 0};
    if (info.si_code != CLD_EXITED) {
      end.signal = info.si_status;
      end.exit_code = 128 + end.signal;
    }
    found.emplace_back(child.get(), end);
  }
  std::stable_partition(found.begin(), found.end(),
                        [](const auto& entry) { return entry.second.signal != 0; });
  for (auto& [child, end] : found) {
    child->out->finish();
    child->err->finish();
    // Dying of a signal that we sent is no failure, nor is saying so as a shell does; but a rank
    // that fails while it stops has failed.
    auto ours = [&](int signal) {
      return signal != 0 && (signal == SIGTERM || signal == SIGKILL || signal == stop_signal);
    };
    end.asked_for = child->told_to_end && (ours(end.signal) || ours(end.exit_code - 128));
  }
  return found;
}

}  // namespace yoke::net
