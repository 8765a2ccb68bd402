#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "yoke/base/run_folder.h"
#include "yoke/elastic/membership.h"
#include "yoke/observe/jsonl.h"
#include "yoke/train/job.h"
#include "yoke/train/run.h"
#include "yoke/train/step.h"

namespace yoke::train {

/// The files of a run's folder that grow with its steps; rank 0 alone writes them.
/// docs/run-folder.md describes every field.
class Recorder {
 public:
  /// Opens metrics, ledger and events, the first two cut back to the steps before `first_step`.
  /// `known`: this job has written them so far, and only their ends may need cutting.
  Recorder(const RunFolder& folder, const World& world, std::int64_t first_step, bool known);

  /// The lines of a step: who computed which samples, and how it went. Nothing if they stand there.
  void step(const Job& job, const StepRecord& record,
            const std::map<std::string, double>& evaluation, const std::string& state_sha256);
  /// `source`: where the state of this generation came from. `resume_ms`: from the change to the
  /// first step of the generation.
  void event(const elastic::Change& change, const std::string& source,
             std::optional<double> resume_ms = std::nullopt);

  /// The loss in the newest line of metrics.jsonl, which an earlier sitting may have written.
  std::optional<double> last_loss() const;

  /// Makes all lines so far durable; before a checkpoint says that they happened.
  void flush();

 private:
  std::uint64_t generation_;
  std::filesystem::path metrics_path_;
  JsonLines metrics_;
  std::int64_t next_step_;  ///< the first whose lines are not there
  JsonLines ledger_, events_;
};

/// report.json; `traffic` is one object a rank.
void write_report(const RunFolder& folder, const RunReport& report, const nlohmann::json& traffic);

}  // namespace yoke::train
