#include "yoke/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"

namespace yoke {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporaryEnding = ".yoke-tmp";

[[noreturn]] void throw_io(std::string_view action, const fs::path& path, int error) {
  std::string_view advice = "Check that the path exists and that this user may use it.";
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    advice = "Free some space or raise the limit, then start the same command again.";
  }
  throw IoError(
      cat("cannot ", action, " ", path.string(), ": ", std::strerror(error), ". ", advice));
}

/// A descriptor that is closed on every way out.
class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags, std::string_view action)
      : value_(::open(path.c_str(), flags | O_CLOEXEC)) {
    if (value_ < 0) throw_io(action, path, errno);
  }
  ~Descriptor() { ::close(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

fs::path folder_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

}  // namespace

std::string read_file(const fs::path& path) {
  const Descriptor file(path, O_RDONLY, "open");
  struct stat about {};
  if (::fstat(file.value(), &about) != 0) throw_io("read", path, errno);
  // The size is only a guess: pipes and files of /proc have none.
  std::string content(static_cast<std::size_t>(std::max<off_t>(about.st_size, 0)) + 1, '\0');
  std::size_t filled = 0;
  for (;;) {
    const ssize_t got = ::read(file.value(), content.data() + filled, content.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_io("read", path, errno);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
    if (filled == content.size()) content.resize(2 * content.size());
  }
  content.resize(filled);
  return content;
}

void write_file_atomically(const fs::path& path, std::string_view content) {
  fs::path temporary = folder_of(path);
  temporary /= cat(".", path.filename().string(), ".", random_token(16), kTemporaryEnding);
  DurableFile file(temporary);
  file.write(std::as_bytes(std::span(content.data(), content.size())));
  file.commit();
  try {
    rename_durably(temporary, path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

std::size_t remove_abandoned_temporaries(const fs::path& folder) {
  std::size_t removed = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.') && name.ends_with(kTemporaryEnding)) {
      if (::unlink(entry.path().c_str()) != 0 && errno != ENOENT) {
        throw_io("remove", entry.path(), errno);
      }
      ++removed;
    }
  }
  if (error) throw_io("list", folder, error.value());
  return removed;
}

DurableFile::DurableFile(fs::path path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw_io("create", path_, errno);
}

DurableFile::~DurableFile() {
  if (committed_) return;
  if (descriptor_ >= 0) ::close(descriptor_);
  ::unlink(path_.c_str());
}

void DurableFile::write(std::span<const std::byte> bytes) {
  YOKE_ENSURE(descriptor_ >= 0, "Write to the closed file ", path_.string(), ".");
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_io("write", path_, errno);
    size_ += static_cast<std::size_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void DurableFile::commit() {
  YOKE_ENSURE(descriptor_ >= 0, "Second commit of ", path_.string(), ".");
  // After a failed fsync the kernel may have dropped the pages and will report success the next
  // time: the only right answer is to give the file up.
  if (::fsync(descriptor_) != 0) throw_io("sync", path_, errno);
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) throw_io("close", path_, errno);
  committed_ = true;
}

void sync_folder(const fs::path& folder) {
  const Descriptor opened(folder, O_RDONLY | O_DIRECTORY, "open the folder");
  // Some network file systems cannot sync a folder and say so by EINVAL; there is nothing more to
  // do.
  if (::fsync(opened.value()) != 0 && errno != EINVAL) throw_io("sync the folder", folder, errno);
}

void rename_durably(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    throw_io(cat("rename ", from.string(), " to"), to, errno);
  }
  sync_folder(folder_of(to));
}

TemporaryFolder::TemporaryFolder(std::string_view prefix) {
  const char* root = std::getenv("TMPDIR");
  const fs::path base = root != nullptr && *root != '\0' ? fs::path(root) : fs::path("/tmp");
  std::string name = (base / cat(prefix, "-XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr) throw_io("create the temporary folder", name, errno);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // A destructor has nobody to tell.
  fs::remove_all(path_, ignored);
}

}  // namespace yoke
