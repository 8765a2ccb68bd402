#include "tests/support/spawn_ranks.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <mutex>
#include <ostream>
#include <sstream>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/exit_code.h"
#include "yoke/base/hash.h"
#include "yoke/net/socket.h"

namespace yoke::test {

void run_threads(int size, const std::function<void(World)>& body) {
  auto worlds = World::of_threads(size);
  std::mutex mutex;
  std::exception_ptr first;
  {
    std::vector<std::jthread> threads;
    for (auto& world : worlds) {
      // The thread owns its World, so that all of it is gone when the thread is.
      threads.emplace_back([&, world = std::move(world)]() mutable {
        try {
          auto mine = std::move(world);
          body(mine);
        } catch (...) {
          std::lock_guard lock(mutex);
          first = first ? first : std::current_exception();
        }
      });
    }
  }
  if (first) {
    std::rethrow_exception(first);
  }
}

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  out << "exit " << outcome.exit_code << ", signal " << outcome.signal
      << (outcome.overdue ? ", overdue" : "") << ", after " << outcome.seconds << " s, "
      << (outcome.error.empty() ? "no error" : outcome.error) << " naming [";
  for (int rank : outcome.ranks) {
    out << ' ' << rank;
  }
  return out << " ]: " << outcome.text;
}

struct RankProcesses::Child {
  pid_t pid = -1;
  net::Descriptor report;  ///< the reading end of its pipe
  std::string said;
  bool ended = false;
  bool stopped = false;
  Outcome outcome;
};

namespace {

/// "error \n ranks \n text": what a child tells its parent.
struct Report {
  std::string error;
  std::vector<int> ranks;
  std::string text;
};

Report describe(const std::exception& error) {
  Report report{.error = "std::exception", .ranks = {}, .text = error.what()};
  if (const auto* lost = dynamic_cast<const PeerLost*>(&error)) {
    report.error = "PeerLost";
    report.ranks = {lost->rank()};
  } else if (const auto* timeout = dynamic_cast<const Timeout*>(&error)) {
    report.error = "Timeout";
    report.ranks = timeout->missing();
  } else if (const auto* mismatch = dynamic_cast<const CollectiveMismatch*>(&error)) {
    report.error = "CollectiveMismatch";
    report.ranks = {mismatch->rank()};
  } else if (dynamic_cast<const Aborted*>(&error) != nullptr) {
    report.error = "Aborted";
  } else if (dynamic_cast<const JoinRefused*>(&error) != nullptr) {
    report.error = "JoinRefused";
  } else if (dynamic_cast<const CommunicationError*>(&error) != nullptr) {
    report.error = "CommunicationError";
  } else if (dynamic_cast<const ConfigError*>(&error) != nullptr) {
    report.error = "ConfigError";
  } else if (dynamic_cast<const InternalError*>(&error) != nullptr) {
    report.error = "InternalError";
  } else if (dynamic_cast<const Error*>(&error) != nullptr) {
    report.error = "Error";
  }
  return report;
}

void send_report(int pipe, const Report& report) {
  std::ostringstream out;
  out << report.error << '\n';
  for (int rank : report.ranks) {
    out << rank << ' ';
  }
  out << '\n' << report.text;
  auto text = std::move(out).str();
  for (std::size_t sent = 0; sent < text.size();) {
    auto written = ::write(pipe, text.data() + sent, text.size() - sent);
    if (written <= 0) {
      return;
    }
    sent += static_cast<std::size_t>(written);
  }
}

[[noreturn]] void run_child(const RankProcesses::Body& body, const Place& place,
                            const net::RendezvousOptions& options, int pipe) {
  int code = kExitFailed;
  Report report;
  try {
    report.text = body(place, options);
    code = kExitOk;
  } catch (const std::exception& error) {
    code = exit_code_of(error);
    report = describe(error);
  } catch (...) {
    report.error = "something that is no std::exception";
  }
  send_report(pipe, report);
  std::fflush(nullptr);
  // Not exit(): the test program's own destructors are the parent's business.
  ::_exit(code);
}

}  // namespace

RankProcesses::RankProcesses(int size, const Body& body) {
  auto any = net::resolve("127.0.0.1", 0, Deadline::after(std::chrono::seconds(5)));
  auto listening = net::listen_on(any);
  auto token = random_token();
  // What is buffered now would be written once by every child.
  std::fflush(nullptr);
  for (int rank = 0; rank < size; ++rank) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      throw IoError(cat("pipe2 failed: ", net::error_text(errno), "."));
    }
    net::Descriptor reading(ends[0]), writing(ends[1]);
    auto parent = ::getpid();
    auto pid = ::fork();
    if (pid < 0) {
      throw IoError(cat("fork failed: ", net::error_text(errno), "."));
    }
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) {
        ::_exit(kExitFailed);
      }
      children_.clear();
      Place place{.rank = rank, .size = size, .local_rank = rank, .local_size = size};
      place.launcher = "yoke";
      place.master_port = net::own_address(listening.number()).port();
      place.job = cat("test at port ", place.master_port);
      net::RendezvousOptions options{.token = token, .timeout = std::chrono::seconds(20)};
      if (rank == 0) {
        // The store takes it over, and closes it.
        options.listening_descriptor = ::fcntl(listening.number(), F_DUPFD_CLOEXEC, 3);
      }
      listening.reset();
      run_child(body, place, options, writing.number());
    }
    Child child;
    child.pid = pid;
    child.report = std::move(reading);
    children_.push_back(std::move(child));
  }
}

RankProcesses::~RankProcesses() {
  for (auto& child : children_) {
    if (!child.ended) {
      ::kill(child.pid, SIGKILL);
      reap(child);
    }
  }
}

pid_t RankProcesses::pid(int rank) const {
  return children_.at(static_cast<std::size_t>(rank)).pid;
}

void RankProcesses::send_signal(int rank, int signal) {
  auto& child = children_.at(static_cast<std::size_t>(rank));
  if (!child.ended) {
    ::kill(child.pid, signal);
  }
}

bool RankProcesses::wait_until_stopped(int rank, Deadline deadline) {
  auto& child = children_.at(static_cast<std::size_t>(rank));
  while (!child.stopped && !child.ended && !deadline.passed()) {
    check(child);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return child.stopped;
}

std::vector<Outcome> RankProcesses::wait(Clock::duration limit) {
  auto deadline = Deadline::after(limit);
  auto all = [this](auto condition) {
    return std::all_of(children_.begin(), children_.end(), condition);
  };
  for (;;) {
    for (auto& child : children_) {
      check(child);
    }
    if (all([](const Child& child) { return child.ended; })) {
      break;
    }
    bool late = deadline.passed();
    if (late || all([](const Child& child) { return child.ended || child.stopped; })) {
      for (auto& child : children_) {
        if (!child.ended) {
          ::kill(child.pid, SIGKILL);
          bool was_stopped = child.stopped;
          reap(child);
          child.outcome.overdue = late && !was_stopped;
          child.outcome.signal = was_stopped ? SIGSTOP : child.outcome.signal;
        }
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::vector<Outcome> outcomes;
  for (auto& child : children_) {
    outcomes.push_back(child.outcome);
  }
  return outcomes;
}

void RankProcesses::check(Child& child) {
  if (child.ended) {
    return;
  }
  read_report(child);
  int status = 0;
  if (::waitpid(child.pid, &status, WNOHANG | WUNTRACED | WCONTINUED) != child.pid) {
    return;
  }
  if (WIFSTOPPED(status)) {
    child.stopped = true;
  } else if (WIFCONTINUED(status)) {
    child.stopped = false;
  } else {
    child.ended = true;
    child.outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    child.outcome.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    child.outcome.seconds = Seconds(Clock::now() - start_).count();
    read_report(child);
    std::istringstream said(child.said);
    std::string ranks;
    std::getline(said, child.outcome.error);
    std::getline(said, ranks);
    std::istringstream numbers(ranks);
    for (int rank = 0; numbers >> rank;) {
      child.outcome.ranks.push_back(rank);
    }
    child.outcome.text.assign(std::istreambuf_iterator<char>(said), {});
  }
}

void RankProcesses::reap(Child& child) {
  while (!child.ended) {
    check(child);
  }
}

void RankProcesses::read_report(Child& child) {
  int flags = ::fcntl(child.report.number(), F_GETFL);
  ::fcntl(child.report.number(), F_SETFL, flags | O_NONBLOCK);
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(child.report.number(), buffer, sizeof buffer)) > 0;) {
    child.said.append(buffer, static_cast<std::size_t>(got));
  }
}

}  // namespace yoke::test
