#include "tests/cli/call.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "yoke/base/clock.h"
#include "yoke/base/text.h"

namespace yoke::test {
namespace {

void redirect(const std::filesystem::path& file, int descriptor) {
  int opened = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::dup2(opened, descriptor);
  ::close(opened);
}

}  // namespace

Call::Call(const std::vector<std::string>& arguments, const CallOptions& options) {
  std::vector<std::string> words{YOKE_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  start(std::move(words), options);
}

std::unique_ptr<Call> Call::of(const std::vector<std::string>& words, const CallOptions& options) {
  std::unique_ptr<Call> call(new Call);
  call->start(words, options);
  return call;
}

void Call::start(std::vector<std::string> words, const CallOptions& options) {
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ > 0) return;
  redirect(output_.path() / "out", STDOUT_FILENO);
  redirect(output_.path() / "err", STDERR_FILENO);
  for (const auto& entry : options.environment) {
    auto equals = entry.find('=');
    ::setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
  if (!options.folder.empty() && ::chdir(options.folder.c_str()) != 0) ::_exit(99);
  ::execv(pointers[0], pointers.data());
  ::_exit(99);
}

Call::~Call() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Call::send(int signal) const {
  ::kill(pid_, signal);
}

Answer Call::wait() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .out = content_of(output_.path() / "out"),
          .err = content_of(output_.path() / "err")};
}

Answer yoke(const std::vector<std::string>& arguments, const CallOptions& options) {
  return Call(arguments, options).wait();
}

Answer run_program(const std::vector<std::string>& words, const CallOptions& options) {
  return Call::of(words, options)->wait();
}

bool eventually(const std::function<bool()>& condition) {
  auto deadline = Deadline::after(std::chrono::seconds(60));
  while (!condition()) {
    if (deadline.passed()) return false;
    ::usleep(2000);
  }
  return true;
}

std::vector<pid_t> processes_with(const std::string& entry) {
  std::vector<pid_t> found;
  std::error_code gone;
  for (const auto& folder : std::filesystem::directory_iterator("/proc", gone)) {
    auto name = folder.path().filename().string();
    if (!std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c); })) {
      continue;
    }
    // Each variable ends in a zero byte.
    auto environment = '\0' + content_of(folder.path() / "environ");
    if (environment.find('\0' + entry + '\0') != std::string::npos) {
      found.push_back(static_cast<pid_t>(std::stol(name)));
    }
  }
  return found;
}

pid_t parent_of(pid_t process) {
  const std::string stat = content_of(cat("/proc/", process, "/stat"));
  const auto end = stat.rfind(") ");
  if (end == std::string::npos) return 0;
  // "pid (name) state parent ..."
  return static_cast<pid_t>(std::stol(stat.substr(end + 4)));
}

std::string content_of(const std::filesystem::path& file) {
  try {
    return read_file(file);
  } catch (const std::exception&) {
    return {};
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace yoke::test
