#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace yoke::checkpoint {

/// A file that is read at positions, in any order. It stays readable after it was renamed or
/// removed. Thread-safe.
///
/// A file that is missing, too short, or on a broken disk is a CheckpointError: whoever looks for a
/// state takes another. What says nothing about the file (no permission, no descriptors) is an
/// IoError.
class InputFile {
 public:
  explicit InputFile(std::filesystem::path path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  /// Fills all of `out`.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  std::string all() const;
  /// Reads the file once, by pieces of 1 MiB.
  std::uint32_t crc32c() const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace yoke::checkpoint
