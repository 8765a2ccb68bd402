#include "yoke/observe/jsonl.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/observe/json_text.h"

namespace yoke {
namespace {

[[noreturn]] void throw_io(std::string_view action, const std::filesystem::path& path, int error) {
  throw IoError(
      cat("cannot ", action, " ", path.string(), ": ", std::strerror(error),
          ". Check the space and the permissions there, then start the same command again."));
}

/// The size of the file up to the end of its last complete line.
off_t complete_size(int descriptor, off_t size) {
  char piece[4096];
  while (size > 0) {
    const off_t start = size > static_cast<off_t>(sizeof piece) ? size - sizeof piece : 0;
    const ssize_t got = ::pread(descriptor, piece, static_cast<std::size_t>(size - start), start);
    if (got <= 0) return size;
    const std::size_t end = std::string_view(piece, static_cast<std::size_t>(got)).rfind('\n');
    if (end != std::string_view::npos) return start + static_cast<off_t>(end) + 1;
    size = start;
  }
  return 0;
}

/// A whole line that ends at `end`, without its newline, and where it starts.
struct Line {
  off_t start = 0;
  std::string text;
};

/// The whole lines of a file, from the last to the first; a torn one at the end is passed over.
class LinesBackwards {
 public:
  explicit LinesBackwards(const std::filesystem::path& path)
      : descriptor_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    if (descriptor_ < 0) throw_io("open", path, errno);
    const off_t size = ::lseek(descriptor_, 0, SEEK_END);
    end_ = complete_size(descriptor_, size);
  }
  ~LinesBackwards() { ::close(descriptor_); }
  LinesBackwards(const LinesBackwards&) = delete;
  LinesBackwards& operator=(const LinesBackwards&) = delete;

  std::optional<Line> next() {
    if (end_ <= 0) return std::nullopt;
    const off_t start = complete_size(descriptor_, end_ - 1);
    Line line{start, std::string(static_cast<std::size_t>(end_ - 1 - start), '\0')};
    if (::pread(descriptor_, line.text.data(), line.text.size(), start) !=
        static_cast<ssize_t>(line.text.size()))
      return std::nullopt;
    end_ = start;
    return line;
  }
  /// Of what next() has returned last; the end of the file's whole lines at first.
  off_t position() const { return end_; }
  bool cut(off_t size) const { return ::ftruncate(descriptor_, size) == 0; }

 private:
  int descriptor_;
  off_t end_ = 0;
};

/// Whether a line with this number is below the limit; nothing if it has no such number.
std::optional<bool> is_below(std::string_view line, const std::string& field, std::int64_t limit) {
  const auto object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  const auto number = object.find(field);
  if (number == object.end() || !number->is_number_integer()) return std::nullopt;
  return number->get<std::int64_t>() < limit;
}

}  // namespace

JsonLines::JsonLines(const std::filesystem::path& path)
    : path_(path),
      descriptor_(::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) throw_io("open", path_, errno);
  // A writer that died may have left the beginning of a line; ours must not be glued to it.
  const off_t size = ::lseek(descriptor_, 0, SEEK_END);
  const off_t complete = size < 0 ? size : complete_size(descriptor_, size);
  if (complete < size && ::ftruncate(descriptor_, complete) != 0) {
    const int error = errno;
    ::close(descriptor_);
    throw_io("cut the torn last line of", path_, error);
  }
}

JsonLines::~JsonLines() {
  ::close(descriptor_);
}

void JsonLines::append(const nlohmann::json& object) {
  const std::string line = json_text(object) + "\n";
  ssize_t written = -1;
  do {
    written = ::write(descriptor_, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(line.size())) return;
  const int error = written < 0 ? errno : ENOSPC;
  if (written > 0) {
    // Nothing of a line, rather than its beginning.
    const off_t end = ::lseek(descriptor_, 0, SEEK_END);
    if (::ftruncate(descriptor_, end - written) != 0) throw_io("cut back", path_, errno);
  }
  throw_io("append to", path_, error);
}

void JsonLines::flush_durably() {
  if (::fsync(descriptor_) != 0) throw_io("sync", path_, errno);
}

void JsonLines::keep_below(const std::filesystem::path& path, const std::string& field,
                           std::int64_t limit) {
  if (!std::filesystem::exists(path)) return;
  const std::string content = read_file(path);
  std::string kept;
  std::size_t number = 0;
  for (std::size_t start = 0; start < content.size();) {
    const std::size_t end = std::min(content.find('\n', start), content.size());
    const std::string_view line = std::string_view(content).substr(start, end - start);
    start = end + 1;
    ++number;
    const auto below = is_below(line, field, limit);
    if (below.value_or(false)) kept.append(line).push_back('\n');
    if (!below && start < content.size()) {
      throw DataError(cat(path.string(), ":", number, ": this is not a line with the number \"",
                          field,
                          "\", and not the last line, which a crash may tear. Move the file "
                          "away to go on without it."));
    }
  }
  if (kept != content) write_file_atomically(path, kept);
}

void JsonLines::cut_tail(const std::filesystem::path& path, const std::string& field,
                         std::int64_t limit) {
  if (!std::filesystem::exists(path)) return;
  LinesBackwards lines(path);
  off_t end = lines.position();
  while (const auto line = lines.next()) {
    const auto below = is_below(line->text, field, limit);
    if (!below) {
      throw DataError(cat(path.string(), ": a line near its end has no number \"", field,
                          "\". Move the file away to go on without it."));
    }
    if (*below) break;
    end = line->start;
  }
  if (!lines.cut(end)) throw_io("cut back", path, errno);
}

std::optional<nlohmann::json> JsonLines::last(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const auto line = LinesBackwards(path).next();
  if (!line) return std::nullopt;
  auto object = nlohmann::json::parse(line->text, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  return object;
}

}  // namespace yoke
