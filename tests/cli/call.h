#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "yoke/base/files.h"

/// Calls of the real program.
namespace yoke::test {

struct Answer {
  int exit_code = -1;  ///< 128 + signal if one killed it
  std::string out;
  std::string err;
};

struct CallOptions {
  std::filesystem::path folder{};          ///< to run in; empty: this one
  std::vector<std::string> environment{};  ///< "NAME=value", added
};

/// `yoke ARGUMENTS`, started and not waited for. The destructor kills what still runs.
class Call {
 public:
  explicit Call(const std::vector<std::string>& arguments, const CallOptions& options = {});
  /// Any program, by its path.
  static std::unique_ptr<Call> of(const std::vector<std::string>& words,
                                  const CallOptions& options = {});
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void send(int signal) const;
  Answer wait();

 private:
  Call() = default;
  void start(std::vector<std::string> words, const CallOptions& options);
  TemporaryFolder output_;
  pid_t pid_ = -1;
};

/// Starts and waits.
Answer yoke(const std::vector<std::string>& arguments, const CallOptions& options = {});

/// Any program, by its path: starts and waits.
Answer run_program(const std::vector<std::string>& words, const CallOptions& options = {});

/// Looks again and again; false after 60 seconds.
bool eventually(const std::function<bool()>& condition);

/// Processes whose environment holds `entry` ("NAME=value"); the dead have none.
std::vector<pid_t> processes_with(const std::string& entry);

/// The process that started it; 0 if it is gone.
pid_t parent_of(pid_t process);

/// The file's content; empty while there is none.
std::string content_of(const std::filesystem::path& file);

std::vector<std::string> lines_of(const std::string& text);

}  // namespace yoke::test
