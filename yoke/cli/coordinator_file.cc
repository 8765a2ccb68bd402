#include "yoke/cli/coordinator_file.h"

#include <poll.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/elastic/link.h"
#include "yoke/observe/json_text.h"

namespace yoke::cli {

void write_coordinator_file(const RunFolder& folder, const CoordinatorFile& file) {
  const nlohmann::json content{{"address", file.address}, {"job", file.job}, {"token", file.token}};
  const mode_t before = ::umask(077);
  try {
    write_file_atomically(folder.coordinator(), json_text(content) + "\n");
  } catch (...) {
    ::umask(before);
    throw;
  }
  ::umask(before);
}

CoordinatorFile read_coordinator_file(const RunFolder& folder) {
  if (!std::filesystem::exists(folder.coordinator())) {
    throw ConfigError(cat(folder.root().string(),
                          " is not training now: it has no coordinator. Start it with yoke train, "
                          "or name another --run folder."));
  }
  const auto content = nlohmann::json::parse(read_file(folder.coordinator()), nullptr, false);
  if (!content.is_object() || !content.contains("address") || !content.contains("token")) {
    throw IoError(cat(folder.coordinator().string(), " is damaged."));
  }
  return {.address = content.value("address", ""),
          .job = content.value("job", ""),
          .token = content.value("token", "")};
}

nlohmann::json ask_coordinator(const RunFolder& folder, const nlohmann::json& request) {
  const CoordinatorFile file = read_coordinator_file(folder);
  const auto limit = Deadline::after(std::chrono::seconds(10));
  elastic::Link link(net::resolve(file.address, limit), file.job, file.token);
  while (!limit.passed()) {
    if (link.advance()) {
      nlohmann::json message = request;
      message["say"] = "request";
      link.push(message);
      link.flush();
    }
    if (const auto answer = link.next(); answer && (*answer)["say"] == "answer") {
      if (answer->contains("error")) throw ConfigError((*answer)["error"].get<std::string>());
      return *answer;
    }
    pollfd polled{link.descriptor(), 0, 0};
    if (polled.fd >= 0) polled.events = link.events();
    ::poll(&polled, 1, 20);
  }
  throw CommunicationError(cat("the coordinator of ", folder.root().string(), " at ", file.address,
                               " does not answer. If yoke train was killed, its file ",
                               folder.coordinator().string(),
                               " is left over: start the run again."));
}

}  // namespace yoke::cli
