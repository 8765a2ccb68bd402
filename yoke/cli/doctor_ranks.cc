#include "yoke/cli/doctor_ranks.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "yoke/base/error.h"
#include "yoke/base/exit_code.h"
#include "yoke/base/hash.h"
#include "yoke/comm/communicator.h"
#include "yoke/net/process.h"
#include "yoke/net/socket.h"

namespace yoke::cli {
namespace {

using namespace std::chrono_literals;
using cluster::Finding;
using cluster::Verdict;

constexpr std::size_t kElements = std::size_t{1} << 20;
constexpr int kRounds = 7;
constexpr auto kCallLimit = 20s;
constexpr auto kLimit = 60s;

/// One rank: returns the exit code; rank 0 writes the median of the seconds to stdout.
int all_reduce(const World& world, comm::TransportKind transport) {
  auto communicator =
      comm::Communicator::create(world, {.transport = transport, .timeout = kCallLimit});
  std::vector<float> data(kElements);
  std::vector<double> seconds;
  const auto ranks = static_cast<float>(world.size());
  for (int round = 0; round < kRounds; ++round) {
    // Whole numbers, exact in any order.
    for (std::size_t i = 0; i < data.size(); ++i) {
      data[i] = static_cast<float>(i % 1000) + static_cast<float>(world.rank());
    }
    communicator->barrier();
    const auto start = Clock::now();
    communicator->all_reduce(std::as_writable_bytes(std::span(data)), DType::kFloat32,
                             comm::ReduceOp::kSum);
    seconds.push_back(Seconds(Clock::now() - start).count());
    for (std::size_t i = 0; i < data.size(); ++i) {
      const float sum = ranks * static_cast<float>(i % 1000) + ranks * (ranks - 1) / 2;
      if (data[i] == sum) continue;
      std::cerr << "element " << i << " is " << data[i] << " and should be " << sum << '\n';
      return kExitData;
    }
  }
  communicator->barrier();
  std::nth_element(seconds.begin(), seconds.begin() + kRounds / 2, seconds.end());
  if (world.rank() == 0) std::cout << seconds[kRounds / 2] << '\n' << std::flush;
  return kExitOk;
}

/// The ranks of one trial. What still runs at the end is killed.
class Ranks {
 public:
  Ranks(int ranks, comm::TransportKind transport)
      : listening_(net::listen_on(net::resolve("127.0.0.1", 0, Deadline::after(5s)))) {
    const auto port = net::own_address(listening_.number()).port();
    const auto token = random_token();
    sigset_t mask;
    ::sigemptyset(&mask);
    for (int rank = 0; rank < ranks; ++rank) {
      net::ProcessSpec spec;
      spec.rank = rank;
      spec.work = [=, this] {
        net::RendezvousOptions options{.token = token, .timeout = kCallLimit};
        if (rank == 0 && ranks > 1) {
          // The store takes it over, and closes it.
          options.listening_descriptor = ::fcntl(listening_.number(), F_DUPFD_CLOEXEC, 3);
        }
        listening_.reset();
        Place place{.rank = rank, .size = ranks, .local_rank = rank, .local_size = ranks};
        place.launcher = "yoke";
        place.master_port = port;
        place.job = cat("doctor at port ", port);
        try {
          return all_reduce(World::at(place, options), transport);
        } catch (const std::exception& error) {
          std::cerr << message_of(error) << '\n';
          return exit_code_of(error);
        }
      };
      children_.push_back({.process = net::start_process(spec, mask, {}), .out = {}, .err = {}});
    }
    listening_.reset();
  }

  ~Ranks() {
    for (auto& child : children_) {
      if (!child.ended) {
        ::kill(-child.process.pid, SIGKILL);
        reap(child);
      }
      ::close(child.process.out);
      ::close(child.process.err);
    }
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  /// What rank 0 wrote. Throws ResourceError with what the first rank that failed said last.
  std::string wait() {
    const auto deadline = Deadline::after(kLimit);
    std::vector<pollfd> open;
    do {
      if (deadline.passed()) {
        throw ResourceError(cat("not done after ", Seconds(kLimit).count(), " s"));
      }
      open.clear();
      for (auto& child : children_) {
        if (read(child.process.out, child.out)) open.push_back({child.process.out, POLLIN, 0});
        if (read(child.process.err, child.err)) open.push_back({child.process.err, POLLIN, 0});
      }
      if (!open.empty()) ::poll(open.data(), open.size(), net::poll_milliseconds(deadline));
    } while (!open.empty());
    for (auto& child : children_) reap(child);
    for (std::size_t rank = 0; rank < children_.size(); ++rank) {
      const auto& [process, out, err, ended, status] = children_[rank];
      if (WIFEXITED(status) && WEXITSTATUS(status) == kExitOk) continue;
      throw ResourceError(cat("rank ", rank, ": ",
                              WIFSIGNALED(status)
                                  ? cat("killed by ", net::signal_name(WTERMSIG(status)))
                                  : last_line(err)));
    }
    return children_.front().out;
  }

 private:
  struct Child {
    net::StartedProcess process;
    std::string out, err;
    bool ended = false;
    int status = 0;
  };

  static void reap(Child& child) {
    while (::waitpid(child.process.pid, &child.status, 0) < 0 && errno == EINTR) {
    }
    child.ended = true;
  }

  static std::string last_line(std::string text) {
    while (text.ends_with('\n')) text.pop_back();
    const auto before = text.rfind('\n');
    return before == std::string::npos ? text : text.substr(before + 1);
  }

  /// False at the end.
  static bool read(int pipe, std::string& text) {
    char buffer[4096];
    for (;;) {
      const auto got = ::read(pipe, buffer, sizeof buffer);
      if (got == 0) return false;
      if (got < 0) return errno == EAGAIN || errno == EINTR;
      text.append(buffer, static_cast<std::size_t>(got));
    }
  }

  net::Descriptor listening_;
  std::vector<Child> children_;
};

Finding try_transport(int ranks, comm::TransportKind transport) {
  Finding finding{.check = cat("all-reduce ", name_of(transport)), .found = {}};
  try {
    std::istringstream said(Ranks(ranks, transport).wait());
    double seconds = 0;
    if (!(said >> seconds)) throw ResourceError("rank 0 ended without a result");
    std::ostringstream text;
    text << ranks << " ranks, 4 MiB in " << std::fixed << std::setprecision(2) << seconds * 1e3
         << " ms, the sum is right";
    finding.found = text.str();
  } catch (const std::exception& error) {
    finding.verdict = Verdict::kFail;
    finding.found = message_of(error);
    finding.advice = transport == comm::TransportKind::kTcp
                         ? "Look at the checks of loopback and open files above."
                         : "Look at the check of shared memory above, or use --transport tcp.";
  }
  return finding;
}

}  // namespace

std::vector<Finding> try_ranks(int ranks) {
  return {try_transport(ranks, comm::TransportKind::kSharedMemory),
          try_transport(ranks, comm::TransportKind::kTcp)};
}

}  // namespace yoke::cli
