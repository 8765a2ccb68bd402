#include "yoke/net/supervisor.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "yoke/base/error.h"
#include "yoke/base/log.h"

namespace yoke::net {
namespace {

int exit_code_of_signal(int signal) {
  return 128 + signal;
}

double seconds_of(Clock::duration span) {
  return Seconds(span).count();
}

bool is_failure(const ProcessEnd& end) {
  return !end.asked_for && end.exit_code != kExitOk && end.exit_code != kExitSaved;
}

}  // namespace

struct Supervisor::Child {
  int rank = 0;
  pid_t pid = -1;
  bool running = true;
  bool told_to_end = false;
  LastLines last;
  std::unique_ptr<ProcessOutput> out;
  std::unique_ptr<ProcessOutput> err;

  void signal_group(int signal) const { ::kill(-pid, signal); }
};

Supervisor::Supervisor(const SupervisorOptions& options)
    : options_(options),
      memory_kills_before_(out_of_memory_kills()),
      out_(STDOUT_FILENO),
      err_(STDERR_FILENO) {
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

Supervisor::~Supervisor() {
  kill_all();
  for (auto& child : children_) {
    if (child->running) ::waitpid(child->pid, nullptr, 0);
  }
  ::close(signals_);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

void Supervisor::start(const ProcessSpec& spec) {
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
}

std::vector<int> Supervisor::descriptors() const {
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

SupervisorOutcome Supervisor::run() {
  // A console that nobody reads does not keep us once somebody has asked twice to end.
  auto console_waits = [&] { return killed_by_signal_ == 0 && (!out_.empty() || !err_.empty()); };
  while (anyone_left() || console_waits()) {
    poll_once();
    read_signals();
    reap();
    check_deadlines();
  }
  return outcome();
}

bool Supervisor::anyone_left() const {
  return std::any_of(children_.begin(), children_.end(),
                     [](const auto& child) { return child->running; });
}

void Supervisor::poll_once() {
  std::vector<pollfd> watched{{.fd = signals_, .events = POLLIN, .revents = 0}};
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
  for (const auto& deadline : {decide_at_, kill_at_}) {
    if (!deadline) continue;
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline->left()).count();
    if (timeout < 0 || left < timeout) timeout = static_cast<int>(left);
  }
  if (::poll(watched.data(), watched.size(), timeout) <= 0) return;
  std::size_t next = 1;
  for (auto* output : outputs) {
    if (watched[next++].revents != 0) output->read_some();
  }
  for (auto* console : consoles) {
    if (watched[next++].revents != 0) console->write_some();
  }
}

void Supervisor::read_signals() {
  signalfd_siginfo info{};
  while (::read(signals_, &info, sizeof info) == sizeof info) {
    int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) continue;
    if (signal == SIGUSR1) {
      for (auto& child : children_) {
        if (child->running) ::kill(child->pid, SIGUSR1);
      }
    } else if (stop_signal_ == 0 && signal != SIGQUIT) {
      stop_signal_ = signal;
      log_info("passing ", signal_name(signal), " on to all ranks; once more kills them");
      pass_on(signal);
      auto grace = Deadline::after(options_.stop_grace);
      if (!kill_at_) kill_at_ = grace;
    } else if (killed_by_signal_ == 0) {
      killed_by_signal_ = signal;
      log_warning(stop_signal_ == 0 ? "" : "a second signal, ", signal_name(signal),
                  ": killing all ranks");
      kill_all();
    }
  }
}

void Supervisor::pass_on(int signal) {
  for (auto& child : children_) {
    if (!child->running) continue;
    child->told_to_end = true;
    child->signal_group(signal);
  }
}

void Supervisor::kill_all() {
  pass_on(SIGKILL);
}

void Supervisor::reap() {
  // Two ends that are found together have no order; a signal is nearer to the cause than a code.
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
      end.exit_code = exit_code_of_signal(end.signal);
    }
    found.emplace_back(child.get(), end);
  }
  std::stable_partition(found.begin(), found.end(),
                        [](const auto& entry) { return entry.second.signal != 0; });
  for (auto& [child, end] : found) ended(*child, end);
}

void Supervisor::ended(Child& child, ProcessEnd end) {
  child.out->finish();
  child.err->finish();
  // Dying of a signal that we sent is no failure, nor is saying so as a shell does; but a rank that
  // fails while it stops has failed.
  auto ours = [&](int signal) {
    return signal != 0 && (signal == SIGTERM || signal == SIGKILL || signal == stop_signal_);
  };
  end.asked_for = child.told_to_end && (ours(end.signal) || ours(end.exit_code - 128));
  ends_.push_back(end);
  if (is_failure(end) && !decide_at_ && !failure_) decide_at_ = Deadline::after(options_.settle);
}

void Supervisor::check_deadlines() {
  if (decide_at_ && !failure_ && (decide_at_->passed() || !anyone_left())) {
    if (only_followers() && !waited_for_cause_) {
      waited_for_cause_ = true;
      decide_at_ = Deadline::after(options_.settle_of_followers);
    } else {
      decide();
    }
  } else if (waited_for_cause_ && !failure_ && !only_followers()) {
    decide();
  }
  if (kill_at_ && kill_at_->passed() && anyone_left()) {
    for (auto& child : children_) {
      if (!child->running) continue;
      log_warning("rank ", child->rank, " (pid ", child->pid, ") has not ended within ",
                  seconds_of(kill_at_->span()), " s: killing it");
    }
    kill_all();
    kill_at_.reset();
  }
}

const ProcessEnd* Supervisor::cause() const {
  const ProcessEnd* follower = nullptr;
  for (const auto& end : ends_) {
    if (!is_failure(end)) continue;
    if (end.exit_code != kExitPeerLost) return &end;
    if (follower == nullptr) follower = &end;
  }
  return follower;
}

bool Supervisor::only_followers() const {
  bool unclear = anyone_left() && cause()->exit_code == kExitPeerLost;
  return unclear && std::none_of(children_.begin(), children_.end(), [](const auto& child) {
           return child->running && is_stopped(child->pid);
         });
}

void Supervisor::decide() {
  const ProcessEnd* end = cause();
  YOKE_ENSURE(end != nullptr, "a failure without a failed rank");
  decide_at_.reset();
  failure_.emplace();
  failure_->rank = end->rank;
  failure_->pid = end->pid;
  failure_->exit_code = end->exit_code;
  failure_->signal = end->signal;
  for (auto& child : children_) {
    if (!child->running || !is_stopped(child->pid)) continue;
    if (end->exit_code == kExitPeerLost && !failure_->stopped) {
      failure_->rank = child->rank;
      failure_->pid = child->pid;
      failure_->stopped = true;
    }
    // It cannot act on SIGTERM, and must not wake up and write.
    child->told_to_end = true;
    child->signal_group(SIGKILL);
  }
  failure_->memory_was_short =
      end->signal == SIGKILL && out_of_memory_kills() > memory_kills_before_;
  for (auto& child : children_) {
    if (child->rank != failure_->rank) continue;
    failure_->last_lines.assign(child->last.lines().begin(), child->last.lines().end());
  }
  if (anyone_left()) {
    pass_on(SIGTERM);
    auto grace = Deadline::after(options_.failure_grace);
    if (!kill_at_ || grace.left() < kill_at_->left()) kill_at_ = grace;
  }
}

SupervisorOutcome Supervisor::outcome() const {
  SupervisorOutcome result;
  result.stop_signal = stop_signal_ != 0 ? stop_signal_ : killed_by_signal_;
  result.stdout_error = out_.error();
  result.failure = failure_;
  result.ends = ends_;
  auto some = [this](auto property) { return std::any_of(ends_.begin(), ends_.end(), property); };
  if (killed_by_signal_ != 0) {
    result.exit_code = exit_code_of_signal(killed_by_signal_);
    result.failure.reset();
  } else if (failure_) {
    result.exit_code = failure_->exit_code;
  } else if (some([](const ProcessEnd& end) { return end.asked_for; })) {
    result.exit_code = exit_code_of_signal(stop_signal_);
  } else if (some([](const ProcessEnd& end) { return end.exit_code == kExitSaved; })) {
    result.exit_code = kExitSaved;
  }
  return result;
}

}  // namespace yoke::net
