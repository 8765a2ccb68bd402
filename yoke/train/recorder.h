#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "yoke/base/run_folder.h"
#include "yoke/observe/jsonl.h"
#include "yoke/train/job.h"
#include "yoke/train/run.h"
#include "yoke/train/step.h"

namespace yoke::train {

/// The files of a run's folder that grow with its steps; rank 0 alone writes them.
/// docs/run-folder.md describes every field.
class Recorder {
 public:
  /// Opens metrics, ledger and events, the first two cut back to what `first_step` has not redone.
  Recorder(const RunFolder& folder, const World& world, std::int64_t first_step);

  /// The lines of step k: who computed which samples, and how it went.
  void step(const Job& job, std::int64_t step, const StepReport& report,
            const std::map<std::string, double>& evaluation, const std::string& state_sha256);
  /// causes: start, killed, user_error ... `source`: where the state came from.
  void event(const std::string& cause, const std::string& source);

  /// The loss in the newest line of metrics.jsonl, which an earlier sitting may have written.
  std::optional<double> last_loss() const;

  /// Makes all lines so far durable; before a checkpoint says that they happened.
  void flush();

 private:
  std::uint64_t generation_;
  int world_size_;
  std::filesystem::path metrics_path_;
  JsonLines metrics_, ledger_, events_;
};

/// report.json; `traffic` is one object a rank.
void write_report(const RunFolder& folder, const RunReport& report, const nlohmann::json& traffic);

}  // namespace yoke::train
