#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

/// The whole file. Throws IoError that names the file and the cause.
std::string read_file(const std::filesystem::path& path);

/// Replaces `path` by `content` so that a reader sees the old file or the new one, never a part,
/// also after a power cut: temporary file beside it, write, fsync, rename, fsync of the folder.
/// Throws IoError and removes the temporary file; the old file stays.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Removes the temporary files that writers left in `folder` because they died in the middle of
/// write_file_atomically; returns how many. Call it where nobody writes there. Throws IoError.
std::size_t remove_abandoned_temporaries(const std::filesystem::path& folder);

/// A new file (an existing one is an IoError), written piece by piece and made durable by `commit`;
/// its name is durable after sync_folder. Destroyed without commit, the file is removed. Every
/// failed write, fsync or close throws IoError; a file whose fsync failed is never reused.
class DurableFile {
 public:
  explicit DurableFile(std::filesystem::path path);
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void write(std::span<const std::byte> bytes);
  std::size_t size() const { return size_; }
  /// fsync and close.
  void commit();

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::size_t size_ = 0;
  bool committed_ = false;
};

/// Renames and makes the rename durable (fsync of the folder that holds `to`).
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);
void sync_folder(const std::filesystem::path& folder);

/// A private folder under TMPDIR, removed with all it holds.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(std::string_view prefix = "yoke");
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Inflates a gzip file (zlib), or returns the bytes of a file that is not compressed. Throws
/// IoError, or DataError for a damaged or cut-off stream.
std::string read_gzip_or_plain(const std::filesystem::path& path);

}  // namespace yoke
