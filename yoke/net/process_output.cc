#include "yoke/net/process_output.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "yoke/base/error.h"
#include "yoke/base/log.h"

namespace yoke::net {
namespace {

/// A line longer than this is passed on in pieces.
constexpr std::size_t kLongestLine = 64 << 10;

/// What is left on the screen of a line with carriage returns in it.
std::string_view as_shown(std::string_view line) {
  constexpr std::string_view kEraseToEnd = "\x1b[K";
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  while (line.ends_with(kEraseToEnd)) line.remove_suffix(kEraseToEnd.size());
  auto start = line.rfind('\r');
  return start == std::string_view::npos ? line : line.substr(start + 1);
}

}  // namespace

void ConsoleQueue::write_some() {
  // PIPE_BUF bytes are what POLLOUT promises room for.
  std::size_t piece = std::min<std::size_t>(waiting_.size(), PIPE_BUF);
  ssize_t written = ::write(descriptor_, waiting_.data(), piece);
  if (written >= 0) {
    waiting_.erase(0, static_cast<std::size_t>(written));
  } else if (errno != EINTR && errno != EAGAIN) {
    error_ = errno;
    waiting_.clear();
  }
}

void LastLines::add(std::string line) {
  if (lines_.size() == kKept) lines_.pop_front();
  lines_.push_back(std::move(line));
}

ProcessOutput::ProcessOutput(int descriptor, const std::filesystem::path& log,
                             ConsoleQueue* console, ProcessSpec::Console style, std::string label,
                             LastLines* last)
    : descriptor_(descriptor),
      log_path_(log),
      console_(console),
      style_(style),
      label_(std::move(label)),
      last_(last) {
  if (log.empty()) return;
  log_ = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (log_ < 0) {
    int error = errno;
    close();
    throw IoError(cat("cannot write the log ", log.string(), ": ", std::strerror(error),
                      ". Choose another folder for the logs."));
  }
}

ProcessOutput::~ProcessOutput() {
  close();
  if (log_ >= 0) ::close(log_);
}

ProcessOutput::Read ProcessOutput::read_piece() {
  std::array<char, 16 << 10> buffer;
  ssize_t count = ::read(descriptor_, buffer.data(), buffer.size());
  if (count > 0) {
    take({buffer.data(), static_cast<std::size_t>(count)});
    return Read::kSome;
  }
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return Read::kNothing;
  return Read::kEnd;
}

bool ProcessOutput::is_unseen() const {
  return console_ != nullptr && console_->error() == EPIPE && log_path_.empty();
}

void ProcessOutput::read_some() {
  if (is_unseen()) {
    close();
  } else if (read_piece() == Read::kEnd) {
    finish();
  }
}

void ProcessOutput::finish() {
  if (!open()) return;
  while (read_piece() == Read::kSome) {
  }
  if (!partial_.empty()) end_line(partial_);
  partial_.clear();
  close();
}

void ProcessOutput::take(std::string_view bytes) {
  if (console_ != nullptr && style_ == ProcessSpec::Console::kRaw) console_->push(bytes);
  partial_ += bytes;
  std::size_t start = 0;
  for (std::size_t end; (end = partial_.find('\n', start)) != std::string::npos; start = end + 1) {
    end_line(std::string_view(partial_).substr(start, end - start));
  }
  partial_.erase(0, start);
  if (partial_.size() > kLongestLine) {
    end_line(partial_);
    partial_.clear();
  }
}

void ProcessOutput::end_line(std::string_view line) {
  std::string shown(as_shown(line));
  if (console_ != nullptr && style_ == ProcessSpec::Console::kLabelled) {
    console_->push(cat(label_, shown, '\n'));
  }
  if (log_ >= 0) {
    std::string text = shown + '\n';
    if (::write(log_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      // The run is worth more than its log: say it once, and go on.
      log_warning("cannot write the log ", log_path_.string(), " (", std::strerror(errno),
                  "): it ends here");
      ::close(log_);
      log_ = -1;
    }
  }
  last_->add(std::move(shown));
}

void ProcessOutput::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace yoke::net
