#pragma once

#include <exception>

namespace yoke {

/// What the program's exit status means; sysexits where it has a word for it.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitData = 65,         ///< bad data, or a value that is not finite
  kExitInternal = 70,     ///< a bug in yoke
  kExitEnvironment = 71,  ///< this machine lacks something
  kExitIo = 74,
  kExitSaved = 75,  ///< stopped early, state saved: start again to continue
  kExitPeerLost = 76,
  kExitDoNotRestart = 77,
  kExitConfig = 78,
  kExitInterrupted = 130,  ///< killed by a second SIGINT; the first one saves and ends in 75
  kExitTerminated = 143,   ///< killed by a second SIGTERM
};

/// The exit code that belongs to an exception; kExitFailed for what yoke does not know.
int exit_code_of(const std::exception& error);

}  // namespace yoke
