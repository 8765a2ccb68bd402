#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "yoke/base/text.h"

namespace yoke {

/// Everything that yoke throws. A message says what happened, to whom, and what to do next.
///
/// A caller may handle the children below; whatever reaches main() becomes an exit code by
/// exit_code_of() (base/exit_code.h). Bugs are InternalError, thrown by YOKE_ENSURE.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The configuration, or the arguments of a call, cannot be right. Exit code 78.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// The command line cannot be right. Exit code 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// A data file is missing, malformed, or does not fit the model; or a value is not finite. Exit
/// code 65.
class DataError : public Error {
 public:
  using Error::Error;
};

/// A file or folder could not be read or written. Exit code 74.
class IoError : public Error {
 public:
  using Error::Error;
};

/// This machine lacks something that cannot be done without: memory, processes, descriptors, ports.
/// Exit code 71.
class ResourceError : public Error {
 public:
  using Error::Error;
};

/// A checkpoint is torn, foreign, or does not belong to this plan. Exit code 74.
class CheckpointError : public Error {
 public:
  using Error::Error;
};

/// A communication failed. The communicator that threw it is spent. Exit code 76.
class CommunicationError : public Error {
 public:
  using Error::Error;
};

/// A rank is gone: its process ended, its connection closed, or it broke the protocol.
class PeerLost : public CommunicationError {
 public:
  PeerLost(int rank, const std::string& message) : CommunicationError(message), rank_(rank) {}
  int rank() const { return rank_; }

 private:
  int rank_;
};

/// A deadline passed. `missing` are the ranks that were waited for.
class Timeout : public CommunicationError {
 public:
  Timeout(std::string operation, std::vector<int> missing, const std::string& message)
      : CommunicationError(message),
        operation_(std::move(operation)),
        missing_(std::move(missing)) {}
  const std::string& operation() const { return operation_; }
  const std::vector<int>& missing() const { return missing_; }

 private:
  std::string operation_;
  std::vector<int> missing_;
};

/// Ranks called different collectives, or the same one with another dtype, count or operation.
class CollectiveMismatch : public CommunicationError {
 public:
  CollectiveMismatch(int rank, const std::string& message)
      : CommunicationError(message), rank_(rank) {}
  int rank() const { return rank_; }

 private:
  int rank_;
};

/// Somebody called abort() on the communicator, here or on another rank.
class Aborted : public CommunicationError {
 public:
  Aborted(std::uint64_t generation, const std::string& message)
      : CommunicationError(message), generation_(generation) {}
  std::uint64_t generation() const { return generation_; }

 private:
  std::uint64_t generation_;
};

/// A stranger, or a rank of another job, build or plan, wanted to take part. Exit code 76.
class JoinRefused : public CommunicationError {
 public:
  using CommunicationError::CommunicationError;
};

/// A bug in yoke: an invariant that does not depend on input is broken. Exit code 70.
class InternalError : public Error {
 public:
  using Error::Error;
};

namespace detail {
[[noreturn]] void ensure_failed(const char* expression, const char* file, int line,
                                const std::string& message);
}  // namespace detail

}  // namespace yoke

/// Checks an invariant of yoke itself, in release builds too. The further arguments are streamed
/// into the message: YOKE_ENSURE(offset + count <= size, "offset ", offset, ", count ", count,
/// ...).
#define YOKE_ENSURE(condition, ...)                                                            \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      ::yoke::detail::ensure_failed(#condition, __FILE__, __LINE__, ::yoke::cat(__VA_ARGS__)); \
    }                                                                                          \
  } while (false)

/// The comparison form: prints both operands. YOKE_ENSURE_EQ(a, b, "why it must hold").
#define YOKE_ENSURE_EQ(a, b, ...) \
  YOKE_ENSURE((a) == (b), "left ", (a), ", right ", (b), ". ", ::yoke::cat(__VA_ARGS__))
