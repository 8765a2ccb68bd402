#include "yoke/train/recorder.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "yoke/base/clock.h"
#include "yoke/base/files.h"
#include "yoke/observe/json_text.h"

namespace yoke::train {

namespace {

std::filesystem::path cut_back(const std::filesystem::path& path, std::int64_t first_step,
                               bool known) {
  known ? JsonLines::cut_tail(path, "step", first_step)
        : JsonLines::keep_below(path, "step", first_step);
  return path;
}

/// The first step that has no line; those of the ledger come before those of the metrics.
std::int64_t step_after(const std::filesystem::path& path) {
  const auto line = JsonLines::last(path);
  return line && line->contains("step") ? line->at("step").get<std::int64_t>() + 1 : 0;
}

}  // namespace

Recorder::Recorder(const RunFolder& folder, const World& world, std::int64_t first_step, bool known)
    : generation_(world.generation()),
      metrics_path_(folder.metrics()),
      metrics_(cut_back(folder.metrics(), first_step, known)),
      next_step_(step_after(folder.metrics())),
      // What a rank began to write of a step, and did not end, goes.
      ledger_(cut_back(folder.ledger(), std::min(first_step, next_step_), known)),
      events_(folder.events()) {}

void Recorder::step(const Job& job, const StepRecord& record,
                    const std::map<std::string, double>& evaluation,
                    const std::string& state_sha256) {
  if (record.step < next_step_) return;
  next_step_ = record.step + 1;
  for (const auto& result : record.results) {
    const auto positions = job.sampler.positions(record.step, result.micro_batch);
    const std::int64_t first = positions.epoch * job.data.train->size() + positions.first;
    ledger_.append({{"step", record.step},
                    {"generation", record.generation},
                    {"micro_batch", result.micro_batch},
                    {"rank", result.rank},
                    {"first", first},
                    {"last", first + positions.count - 1}});
  }
  nlohmann::json line{{"step", record.step},
                      {"generation", record.generation},
                      {"world_size", record.world_size},
                      {"samples", job.sampler.samples_of_step(record.step)},
                      {"loss", record.loss},
                      {"lr", record.lr},
                      {"grad_norm", record.norm},
                      {"ms",
                       {{"data", record.ms.data},
                        {"forward", record.ms.forward},
                        {"backward", record.ms.backward},
                        {"communicate", record.ms.communicate},
                        {"optimize", record.ms.optimize}}}};
  for (const auto& [name, value] : evaluation) line["test_" + name] = value;
  if (!state_sha256.empty()) line["state_sha256"] = state_sha256;
  metrics_.append(line);
}

std::optional<double> Recorder::last_loss() const {
  const auto line = JsonLines::last(metrics_path_);
  if (!line || !line->contains("loss") || !line->at("loss").is_number()) return std::nullopt;
  return line->at("loss").get<double>();
}

void Recorder::event(const elastic::Change& change, const std::string& source,
                     std::optional<double> resume_ms) {
  const bool is_start = change.cause == "start";
  events_.append(
      {{"time", utc_now()},
       {"generation", generation_},
       {"cause", change.cause},
       {"rank", change.rank < 0 ? nlohmann::json() : nlohmann::json(change.rank)},
       {"detail", change.detail},
       {"recovery_source", source},
       {"detect_ms", is_start ? nlohmann::json() : nlohmann::json(change.detect_ms)},
       {"resume_ms", resume_ms && !is_start ? nlohmann::json(*resume_ms) : nlohmann::json()}});
}

void Recorder::flush() {
  metrics_.flush_durably();
  ledger_.flush_durably();
}

void write_report(const RunFolder& folder, const RunReport& report, const nlohmann::json& traffic) {
  nlohmann::json bytes = nlohmann::json::array();
  for (const auto& lines : traffic) {
    std::uint64_t sent = 0;
    for (const auto& line : lines) sent += line.at("payload_bytes").get<std::uint64_t>();
    bytes.push_back(sent);
  }
  const nlohmann::json file{{"status", report.status},
                            {"steps", report.steps},
                            {"steps_per_epoch", report.steps_per_epoch},
                            {"samples", report.samples},
                            {"seconds", report.seconds},
                            {"samples_per_second", report.samples_per_second},
                            {"metrics", report.metrics},
                            {"state_sha256", report.state_sha256},
                            {"promise", report.promise},
                            {"bytes", bytes},
                            {"sample", report.sample}};
  nlohmann::json all = nlohmann::json::array();
  for (const auto& lines : traffic) {
    for (const auto& line : lines) all.push_back(line);
  }
  write_file_atomically(folder.traffic(), json_text(all, 1) + "\n");
  write_file_atomically(folder.report(), json_text(file, 1) + "\n");
}

}  // namespace yoke::train
