#include "bench/team.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <numeric>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"

namespace yoke::bench {
namespace {

constexpr auto kPatience = std::chrono::minutes(5);
constexpr char kEnd[] = "end";

net::Descriptor checked(int descriptor, const char* what) {
  if (descriptor < 0) throw IoError(cat(what, " failed: ", net::error_text(errno), "."));
  return net::Descriptor(descriptor);
}

pid_t checked_fork() {
  std::cout.flush();
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) throw IoError(cat("fork failed: ", net::error_text(errno), "."));
  if (pid == 0) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  return pid;
}

void write_line(int descriptor, const std::string& text) {
  const std::string line = text + "\n";
  if (::write(descriptor, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    throw IoError(cat("cannot write to a rank: ", net::error_text(errno), "."));
}

/// Until "end", or until the parent is gone.
void serve(const Team::Work& work, int from, int to) {
  std::string unread;
  for (char c = 0; ::read(from, &c, 1) == 1;) {
    if (c != '\n') {
      unread += c;
      continue;
    }
    if (unread == kEnd) return;
    write_line(to, cat(work(unread)));
    unread.clear();
  }
}

}  // namespace

Team Team::of_forks(int size, const std::function<Work(const World&)>& set_up) {
  Team team;
  auto listening =
      net::listen_on(net::resolve("127.0.0.1", 0, Deadline::after(std::chrono::seconds(5))));
  const std::uint16_t port = net::own_address(listening.number()).port();
  const std::string token = random_token();
  for (int rank = 0; rank < size; ++rank) {
    int down[2], up[2];
    if (::pipe2(down, O_CLOEXEC) != 0 || ::pipe2(up, O_CLOEXEC) != 0)
      throw IoError(cat("pipe2 failed: ", net::error_text(errno), "."));
    Rank mine;
    net::Descriptor lines(down[0]), answers(up[1]);
    mine.to = net::Descriptor(down[1]);
    mine.from = net::Descriptor(up[0]);
    mine.pid = checked_fork();
    if (mine.pid != 0) {
      team.children_.push_back(mine.pid);
      team.ranks_.push_back(std::move(mine));
      continue;
    }
    int code = 1;
    try {
      Place place{.rank = rank, .size = size, .local_rank = rank, .local_size = size};
      place.launcher = "yoke";
      place.master_port = port;
      place.job = cat("bench at port ", port);
      net::RendezvousOptions options{.token = token};
      if (rank == 0) options.listening_descriptor = ::fcntl(listening.number(), F_DUPFD_CLOEXEC, 3);
      listening.reset();
      const World world = World::at(place, options);
      serve(set_up(world), lines.number(), answers.number());
      code = 0;
    } catch (const std::exception& error) {
      std::cerr << "rank " << rank << ": " << error.what() << std::endl;
    }
    ::_exit(code);
  }
  return team;
}

Team Team::of_program(const std::vector<std::string>& command, int size, bool freeze) {
  Team team;
  team.freeze_ = freeze;
  std::string folder = std::filesystem::temp_directory_path() / "yoke-bench-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr)
    throw IoError(cat("mkdtemp failed: ", net::error_text(errno), "."));
  team.folder_ = folder;
  for (int rank = 0; rank < size; ++rank) {
    Rank mine;
    // Opened for both, so that opening does not wait for the other side.
    for (auto [descriptor, name] : {std::pair{&mine.to, ".in"}, std::pair{&mine.from, ".out"}}) {
      const std::string path = cat(folder, "/", rank, name);
      if (::mkfifo(path.c_str(), 0600) != 0)
        throw IoError(cat("mkfifo failed: ", net::error_text(errno), "."));
      *descriptor = checked(::open(path.c_str(), O_RDWR | O_CLOEXEC), "open");
    }
    team.ranks_.push_back(std::move(mine));
  }
  const pid_t pid = checked_fork();
  if (pid == 0) {
    ::setenv("BENCH_TURNS", folder.c_str(), 1);
    ::setenv("OMP_NUM_THREADS", "1", 1);
    std::vector<char*> arguments;
    for (const auto& part : command) arguments.push_back(const_cast<char*>(part.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    std::cerr << "cannot run " << command[0] << ": " << net::error_text(errno) << std::endl;
    ::_exit(127);
  }
  team.children_.push_back(pid);
  for (std::size_t rank = 0; rank < team.ranks_.size(); ++rank)
    team.ranks_[rank].pid = std::stoi(team.answer_of(rank));
  if (freeze) team.signal_ranks(SIGSTOP);
  return team;
}

Team::~Team() {
  if (children_.empty()) return;  // Moved from.
  if (freeze_) signal_ranks(SIGCONT);
  for (Rank& rank : ranks_) {
    const std::string line = cat(kEnd, "\n");
    // A rank that is gone already has said why.
    [[maybe_unused]] const auto written = ::write(rank.to.number(), line.data(), line.size());
  }
  for (const pid_t child : children_) ::waitpid(child, nullptr, 0);
  if (!folder_.empty()) std::filesystem::remove_all(folder_);
}

void Team::signal_ranks(int signal) {
  for (const Rank& rank : ranks_)
    if (rank.pid > 0) ::kill(rank.pid, signal);
}

void Team::tell(const std::string& line) {
  if (freeze_) signal_ranks(SIGCONT);
  for (const Rank& rank : ranks_) write_line(rank.to.number(), line);
}

std::string Team::answer_of(std::size_t rank) {
  Rank& mine = ranks_[rank];
  const auto deadline = Deadline::after(kPatience);
  for (;;) {
    if (const auto end = mine.unread.find('\n'); end != std::string::npos) {
      const std::string line = mine.unread.substr(0, end);
      mine.unread.erase(0, end + 1);
      return line;
    }
    pollfd ready{.fd = mine.from.number(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, 500) > 0 && (ready.revents & POLLIN) != 0) {
      char buffer[256];
      const ssize_t got = ::read(mine.from.number(), buffer, sizeof buffer);
      mine.unread.append(buffer, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      continue;
    }
    siginfo_t ended{};
    for (const pid_t child : children_) {
      if (::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
          ended.si_pid != 0)
        throw Error(cat("rank ", rank, " has ended in the middle of the measurement."));
    }
    if (deadline.passed()) throw Error(cat("rank ", rank, " does not answer."));
  }
}

std::vector<double> Team::turn(const std::string& line) {
  tell(line);
  std::vector<double> answers;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    answers.push_back(std::stod(answer_of(rank)));
  if (freeze_) signal_ranks(SIGSTOP);
  return answers;
}

double Team::mean_of_turn(const std::string& line) {
  const auto answers = turn(line);
  return std::accumulate(answers.begin(), answers.end(), 0.0) / static_cast<double>(answers.size());
}

}  // namespace yoke::bench
