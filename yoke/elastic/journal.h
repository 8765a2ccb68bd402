#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "yoke/elastic/roster.h"
#include "yoke/observe/jsonl.h"

namespace yoke::elastic {

/// What a coordinator must know again after its own restart: written before anybody acts on it.
struct Record {
  std::uint64_t generation = 0;
  std::vector<WorkerId> members;  ///< by rank
  WorkerId next_worker = 0;
  int wanted = 0;
  std::int64_t reached = -1;
};

/// The write-ahead log of a coordinator: one line a generation, synced. The last whole line counts.
class Journal {
 public:
  /// Goes on with what lies at `path`, or begins it.
  explicit Journal(const std::filesystem::path& path);

  /// The newest record of `job`; nothing if there is none, or it is of another job.
  static std::optional<Record> newest(const std::filesystem::path& path, const std::string& job);
  /// Throws IoError.
  void append(const std::string& job, const Record& record);

 private:
  JsonLines lines_;
};

}  // namespace yoke::elastic
