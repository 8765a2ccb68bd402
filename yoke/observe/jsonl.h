#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace yoke {

/// A file of one JSON object a line, appended to by one process; others may read it meanwhile. Each
/// line is written by one write(2). Not thread-safe. A number that is not finite becomes null.
class JsonLines {
 public:
  /// Opens for appending; creates. Drops a torn last line, which a crash leaves. Throws IoError.
  explicit JsonLines(const std::filesystem::path& path);
  ~JsonLines();
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;

  /// Throws IoError, and leaves nothing of the line then.
  void append(const nlohmann::json& object);
  void flush_durably();  ///< fsync

  /// Cuts the file back to the lines whose number `field` is below `limit`, and drops a torn last
  /// line; nothing happens if there is no such file. Atomic. Throws DataError for a damaged line
  /// that is not the last.
  static void keep_below(const std::filesystem::path& path, const std::string& field,
                         std::int64_t limit);
  /// The same for a file whose numbers ascend and which this job has read before: looks at the end
  /// only, whatever the length of the file, and cuts it in place.
  static void cut_tail(const std::filesystem::path& path, const std::string& field,
                       std::int64_t limit);
  /// The last whole line, if it is an object; reads no more than that.
  static std::optional<nlohmann::json> last(const std::filesystem::path& path);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace yoke
