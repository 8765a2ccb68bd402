#include "yoke/base/file_identity.h"

#include <sys/stat.h>

namespace yoke {

std::optional<FileIdentity> identity_of(const std::filesystem::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  return FileIdentity{found.st_dev, found.st_ino};
}

}  // namespace yoke
