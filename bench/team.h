#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/net/socket.h"
#include "yoke/net/world.h"

namespace yoke::bench {

/// The ranks of one contender of a measurement. They live through all of it, and work only when it
/// is their turn: so contenders alternate within seconds, and a busy moment of the machine meets
/// all of them.
///
/// A rank is told what to do by a line, and answers with a line that holds one number. Make teams
/// while this process has one thread, and before it has run an operation of libtorch.
class Team {
 public:
  /// Does what the line says; returns the number. Owns all that the rank needs.
  using Work = std::function<double(const std::string& line)>;

  /// Ranks forked from this process; `set_up` runs in each, once. They have a rendezvous of their
  /// own.
  static Team of_forks(int size, const std::function<Work(const World&)>& set_up);

  /// Ranks of any program: `command` starts all of them (a launcher does), with BENCH_TURNS in
  /// the environment: a folder where rank r reads lines from the pipe "r.in" and writes to "r.out",
  /// first its pid. `freeze`: they are stopped by SIGSTOP out of turn, for programs that poll all
  /// the time.
  static Team of_program(const std::vector<std::string>& command, int size, bool freeze);

  Team(Team&&) noexcept = default;
  Team& operator=(Team&&) = delete;
  /// Tells the ranks to end, and waits for them.
  ~Team();

  /// The answers of all ranks to `line`, which they get at the same time. Throws Error if a rank
  /// has ended.
  std::vector<double> turn(const std::string& line);
  /// Their mean.
  double mean_of_turn(const std::string& line);

 private:
  struct Rank {
    pid_t pid = -1;
    net::Descriptor to, from;
    std::string unread;
  };
  Team() = default;
  void tell(const std::string& line);
  std::string answer_of(std::size_t rank);
  void signal_ranks(int signal);

  std::vector<Rank> ranks_;
  std::vector<pid_t> children_;
  std::string folder_;  ///< of the pipes of a program
  bool freeze_ = false;
};

}  // namespace yoke::bench
