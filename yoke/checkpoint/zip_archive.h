#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "yoke/checkpoint/input_file.h"

namespace yoke::checkpoint {

/// A zip archive, of which the files can be read that are stored without compression, as
/// torch.save() stores them (with the 64-bit fields where it needs them). Every position is checked
/// against the size of the file. Throws CheckpointError. Views `file`, which must outlive it.
class ZipArchive {
 public:
  struct Entry {
    std::uint64_t offset = 0;  ///< of its first byte
    std::uint64_t bytes = 0;
    std::uint32_t crc32 = 0;
    bool is_stored = true;  ///< not compressed
  };

  explicit ZipArchive(const InputFile& file);

  const std::map<std::string, Entry>& entries() const { return entries_; }
  /// Throws if there is none of that name, or it is compressed.
  const Entry& entry(const std::string& name) const;
  /// False for one that was saved with torch.serialization.set_crc32_options(False): then there is
  /// nothing to compare with.
  bool has_checksums() const { return has_checksums_; }
  /// Compares the entry with its checksum, by pieces of 1 MiB.
  void verify(const std::string& name) const;
  /// Verified.
  std::string read(const std::string& name) const;

 private:
  const InputFile& file_;
  bool has_checksums_ = false;
  std::map<std::string, Entry> entries_;
};

}  // namespace yoke::checkpoint
