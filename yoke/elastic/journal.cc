#include "yoke/elastic/journal.h"

#include <nlohmann/json.hpp>

#include "yoke/base/files.h"

namespace yoke::elastic {

Journal::Journal(const std::filesystem::path& path) : lines_(path) {}

std::optional<Record> Journal::newest(const std::filesystem::path& path, const std::string& job) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  const std::string text = read_file(path);
  const std::size_t end = text.rfind('\n');
  if (end == std::string::npos) return std::nullopt;
  const std::size_t before = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
  const std::size_t start = before == std::string::npos ? 0 : before + 1;
  const auto line = nlohmann::json::parse(text.substr(start, end - start), nullptr, false);
  if (!line.is_object() || line.value("job", "") != job) return std::nullopt;
  Record record;
  record.generation = line.value("generation", std::uint64_t{0});
  record.members = line.value("members", std::vector<WorkerId>{});
  record.next_worker = line.value("next_worker", WorkerId{0});
  record.wanted = line.value("wanted", 0);
  record.reached = line.value("reached", std::int64_t{-1});
  return record;
}

void Journal::append(const std::string& job, const Record& record) {
  lines_.append({{"job", job},
                 {"generation", record.generation},
                 {"members", record.members},
                 {"next_worker", record.next_worker},
                 {"wanted", record.wanted},
                 {"reached", record.reached}});
  lines_.flush_durably();
}

}  // namespace yoke::elastic
