#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "yoke/base/run_folder.h"

namespace yoke::cli {

/// report.json. Throws IoError or DataError.
nlohmann::json read_report(const RunFolder& folder);

/// The report for a person: status, steps, metrics, state, and what to type next. `command`
/// continues a run that was stopped.
std::string to_text(const nlohmann::json& report, const RunFolder& folder,
                    const std::string& command);

/// "accuracy" as a percentage, losses with four digits.
std::string metric_text(const std::string& name, double value);

}  // namespace yoke::cli
