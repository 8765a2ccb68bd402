#include "yoke/checkpoint/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"

namespace yoke::checkpoint {

namespace {

constexpr std::size_t kChunk = 1 << 20;

[[noreturn]] void fail(const char* action, const std::filesystem::path& path, int error) {
  const std::string what = cat("cannot ", action, " ", path.string(), ": ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR || error == EISDIR || error == EIO)
    throw CheckpointError(what + ".");
  throw IoError(what + ". Check that this user may read it.");
}

}  // namespace

InputFile::InputFile(std::filesystem::path path)
    : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_ < 0) fail("open", path_, errno);
  struct stat about {};
  int error = ::fstat(descriptor_, &about) != 0 ? errno : 0;
  if (error == 0 && !S_ISREG(about.st_mode)) error = EISDIR;
  if (error != 0) {
    ::close(descriptor_);
    fail("read", path_, error);
  }
  size_ = static_cast<std::uint64_t>(about.st_size);
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

void InputFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path_, errno);
    if (got == 0) {
      throw CheckpointError(
          cat(path_.string(), " ends before byte ", offset + out.size(), ": it was cut off."));
    }
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

std::string InputFile::all() const {
  std::string content(size_, '\0');
  read(0, std::as_writable_bytes(std::span(content)));
  return content;
}

std::uint32_t InputFile::crc32c() const {
  std::vector<std::byte> chunk(static_cast<std::size_t>(std::min<std::uint64_t>(size_, kChunk)));
  std::uint32_t checksum = 0;
  for (std::uint64_t at = 0; at < size_; at += chunk.size()) {
    const auto part = std::span(chunk).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(chunk.size(), size_ - at)));
    read(at, part);
    checksum = yoke::crc32c(part, checksum);
  }
  return checksum;
}

}  // namespace yoke::checkpoint
