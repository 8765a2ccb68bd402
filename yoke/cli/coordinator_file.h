#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "yoke/base/run_folder.h"

namespace yoke::cli {

/// How the coordinator of a run that is training is reached.
struct CoordinatorFile {
  std::string address;  ///< "127.0.0.1:4000"
  std::string job;
  std::string token;
};

/// Readable by its owner alone. Throws IoError.
void write_coordinator_file(const RunFolder& folder, const CoordinatorFile& file);
/// Throws ConfigError if the run is not training, IoError if the file cannot be read.
CoordinatorFile read_coordinator_file(const RunFolder& folder);

/// Asks the coordinator of a run and returns its answer. Throws CommunicationError if it does not
/// answer within 10 s, ConfigError with its words if it refuses.
nlohmann::json ask_coordinator(const RunFolder& folder, const nlohmann::json& request);

}  // namespace yoke::cli
