#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace yoke {

/// What the program's exit status means; sysexits where it has a word for it.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitData = 65,         ///< bad data, or a value that is not finite
  kExitInternal = 70,     ///< a bug in yoke
  kExitEnvironment = 71,  ///< this machine lacks something: memory, processes, descriptors, ports
  kExitIo = 74,
  kExitSaved = 75,  ///< stopped early, state saved: start again to continue
  kExitPeerLost = 76,
  kExitDoNotRestart = 77,  ///< the same failure twice, or no progress: starting again will not help
  kExitConfig = 78,
  kExitInterrupted = 130,  ///< killed by a second SIGINT; the first one saves and ends in 75
  kExitBrokenPipe = 141,   ///< whoever read our stdout has ended
  kExitTerminated = 143,   ///< killed by a second SIGTERM
};

/// The exit code that belongs to an exception; kExitFailed for what yoke does not know.
int exit_code_of(const std::exception& error);

inline constexpr std::string_view kNotEnoughMemory =
    "there is not enough memory. Fewer workers (-n) or smaller micro-batches (train.micro_batch) "
    "need less; ulimit -v and the cgroup may limit it.";

/// What to say of an exception that ends the program: its text, or, for the exceptions of the
/// library that have none (no memory), what happened and what to do.
std::string message_of(const std::exception& error);

}  // namespace yoke
