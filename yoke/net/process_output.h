#pragma once

#include <deque>
#include <filesystem>
#include <string>
#include <string_view>

#include "yoke/net/process.h"

namespace yoke::net {

/// What waits to be written to this process's stdout or stderr. It never blocks: a console that is
/// stopped (Ctrl-S, a slow pipe) must not keep a signal from being seen. Not thread-safe.
class ConsoleQueue {
 public:
  explicit ConsoleQueue(int descriptor) : descriptor_(descriptor) {}

  void push(std::string_view text) {
    if (error_ == 0) waiting_ += text;
  }
  /// Writes one piece that poll(POLLOUT) has said there is room for. A console that is gone or
  /// full swallows the rest.
  void write_some();

  /// The errno of the write that failed; 0: none has.
  int error() const { return error_; }

  int descriptor() const { return descriptor_; }
  bool empty() const { return waiting_.empty(); }
  /// True when so much waits that the sources should not be read for now.
  bool full() const { return waiting_.size() > kFull; }

 private:
  static constexpr std::size_t kFull = 1 << 20;
  int descriptor_;
  int error_ = 0;
  std::string waiting_;
};

/// The newest lines of a rank, out of both of its streams, in the order they came.
class LastLines {
 public:
  void add(std::string line);
  const std::deque<std::string>& lines() const { return lines_; }

 private:
  static constexpr std::size_t kKept = 20;
  std::deque<std::string> lines_;
};

/// One stream of a rank, from its pipe to its log file, the console, and the last lines. The log
/// and the labelled console get whole lines, each as a terminal would show it in the end: what
/// stands before the last carriage return of a line (a progress bar that was redrawn) is left out.
class ProcessOutput {
 public:
  /// Owns `descriptor`. `console` may be null: not shown. Throws IoError when the log cannot be
  /// made.
  ProcessOutput(int descriptor, const std::filesystem::path& log, ConsoleQueue* console,
                ProcessSpec::Console style, std::string label, LastLines* last);
  ~ProcessOutput();
  ProcessOutput(const ProcessOutput&) = delete;
  ProcessOutput& operator=(const ProcessOutput&) = delete;

  bool open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  int log_descriptor() const { return log_; }
  /// From here on its lines go to this console too; null: to none.
  void show(ConsoleQueue* console) { console_ = console; }
  /// Whether bytes are taken: not while the console is behind.
  bool wants_reading() const { return open() && (console_ == nullptr || !console_->full()); }
  /// Reads one piece; closes at the end of the stream, and when nobody will see what comes (the
  /// console's reader has left, and there is no log): the rank then gets SIGPIPE, as it would
  /// without us in between.
  void read_some();
  /// Reads what is there without waiting, then closes: for a process that has ended.
  void finish();

 private:
  enum class Read { kSome, kNothing, kEnd };
  bool is_unseen() const;
  Read read_piece();
  void take(std::string_view bytes);
  void end_line(std::string_view line);
  void close();

  int descriptor_;
  int log_ = -1;
  std::filesystem::path log_path_;
  ConsoleQueue* console_;
  ProcessSpec::Console style_;
  std::string label_;
  LastLines* last_;
  std::string partial_;
};

}  // namespace yoke::net
