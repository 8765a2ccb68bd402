#include "yoke/cli/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "yoke/base/error.h"

namespace yoke::cli {

RunLock::RunLock(const RunFolder& folder) : folder_(folder), descriptor_(take()) {}

RunLock::~RunLock() {
  ::close(descriptor_);
}

void RunLock::renew() {
  int renewed = take();
  ::close(descriptor_);
  descriptor_ = renewed;
}

int RunLock::take() const {
  std::error_code failed;
  std::filesystem::create_directories(folder_.root(), failed);
  auto path = folder_.lock();
  int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    // Without the folder, what forbade that is the reason.
    auto reason = failed ? failed.message() : std::string(std::strerror(errno));
    throw IoError(
        cat("cannot make ", path.string(), ": ", reason, ". Choose another place with --run."));
  }
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    int error = errno;
    std::array<char, 32> holder{};
    [[maybe_unused]] auto got = ::pread(descriptor, holder.data(), holder.size() - 1, 0);
    ::close(descriptor);
    if (error != EWOULDBLOCK) {
      throw IoError(cat("cannot lock ", path.string(), ": ", std::strerror(error),
                        ". Choose a file system that has locks with --run."));
    }
    throw IoError(cat("process ", std::strtol(holder.data(), nullptr, 10), " is training in ",
                      folder_.root().string(),
                      ". Wait for it, stop it with kill -TERM, or choose another --run."));
  }
  auto pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(descriptor, 0) != 0 ||
      ::pwrite(descriptor, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    int error = errno;
    ::close(descriptor);
    throw IoError(cat("cannot write ", path.string(), ": ", std::strerror(error), '.'));
  }
  return descriptor;
}

}  // namespace yoke::cli
