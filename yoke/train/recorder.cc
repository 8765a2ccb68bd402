#include "yoke/train/recorder.h"

#include <nlohmann/json.hpp>

#include "yoke/base/clock.h"
#include "yoke/base/files.h"
#include "yoke/observe/json_text.h"

namespace yoke::train {

namespace {

std::filesystem::path cut_back(const std::filesystem::path& path, std::int64_t first_step) {
  JsonLines::keep_below(path, "step", first_step);
  return path;
}

}  // namespace

Recorder::Recorder(const RunFolder& folder, const World& world, std::int64_t first_step)
    : generation_(world.generation()),
      world_size_(world.size()),
      metrics_path_(folder.metrics()),
      metrics_(cut_back(folder.metrics(), first_step)),
      ledger_(cut_back(folder.ledger(), first_step)),
      events_(folder.events()) {}

void Recorder::step(const Job& job, std::int64_t step, const StepReport& report,
                    const std::map<std::string, double>& evaluation,
                    const std::string& state_sha256) {
  for (const auto& result : *report.outcome.results) {
    const auto positions = job.sampler.positions(step, result.micro_batch);
    const std::int64_t first = positions.epoch * job.data.train->size() + positions.first;
    ledger_.append({{"step", step},
                    {"generation", generation_},
                    {"micro_batch", result.micro_batch},
                    {"rank", result.rank},
                    {"first", first},
                    {"last", first + positions.count - 1}});
  }
  nlohmann::json line{{"step", step},
                      {"generation", generation_},
                      {"world_size", world_size_},
                      {"samples", job.sampler.samples_of_step(step)},
                      {"loss", report.outcome.loss},
                      {"lr", report.lr},
                      {"grad_norm", report.outcome.norm},
                      {"ms",
                       {{"data", report.ms.data},
                        {"forward", report.ms.forward},
                        {"backward", report.ms.backward},
                        {"communicate", report.ms.communicate},
                        {"optimize", report.ms.optimize}}}};
  for (const auto& [name, value] : evaluation) line["test_" + name] = value;
  if (!state_sha256.empty()) line["state_sha256"] = state_sha256;
  metrics_.append(line);
}

std::optional<double> Recorder::last_loss() const {
  const std::string text = read_file(metrics_path_);
  const std::size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return std::nullopt;
  const std::size_t start = text.rfind('\n', end);
  const auto line = nlohmann::json::parse(text.substr(start == std::string::npos ? 0 : start + 1),
                                          nullptr, false);
  if (!line.is_object() || !line.contains("loss") || !line["loss"].is_number()) return std::nullopt;
  return line["loss"].get<double>();
}

void Recorder::event(const std::string& cause, const std::string& source) {
  events_.append({{"time", utc_now()},
                  {"generation", generation_},
                  {"cause", cause},
                  {"rank", nullptr},
                  {"recovery_source", source},
                  {"detect_ms", nullptr},
                  {"resume_ms", nullptr}});
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
