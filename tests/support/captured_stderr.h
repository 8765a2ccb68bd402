#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "yoke/base/files.h"

namespace yoke::test {

/// What is written to descriptor 2 while it lives goes to a file instead. One at a time.
class CapturedStderr {
 public:
  CapturedStderr() : saved_(::dup(STDERR_FILENO)) {
    const int file = ::open(path().c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(file, STDERR_FILENO);
    ::close(file);
  }
  ~CapturedStderr() {
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
  }
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;

  std::string text() const { return read_file(path()); }

 private:
  std::filesystem::path path() const { return folder_.path() / "stderr"; }

  TemporaryFolder folder_;
  int saved_;
};

}  // namespace yoke::test
