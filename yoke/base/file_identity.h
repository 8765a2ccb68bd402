#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace yoke {

/// What a path leads to, as long as it exists; another file or folder of the same name is another.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0;
  bool operator==(const FileIdentity&) const = default;
};

/// Nothing if there is nothing at `path`.
std::optional<FileIdentity> identity_of(const std::filesystem::path& path);

}  // namespace yoke
