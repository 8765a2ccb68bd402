#include "yoke/train/sitting.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "yoke/base/error.h"
#include "yoke/base/log.h"
#include "yoke/checkpoint/writer.h"
#include "yoke/tensor/fingerprint.h"
#include "yoke/tensor/worker_setup.h"
#include "yoke/train/same_settings.h"

namespace yoke::train {

namespace {

comm::CommunicatorOptions communicator_options(const RunConfig& config) {
  const auto timeout = std::chrono::duration_cast<Clock::duration>(Seconds(config.comm.timeout));
  return {.transport = comm::transport_from(config.comm.transport),
          .timeout = timeout,
          .name = "train"};
}

std::unique_ptr<comm::Communicator> join(const RunConfig& config, const World& world,
                                         const RunOptions& options) {
  require_same_settings(world, config, options);
  tensor::set_up_worker(config.train.threads);
  return comm::Communicator::create(world, communicator_options(config));
}

sync::GradientSyncOptions gradient_options(const RunConfig& config, const Job& job) {
  return {.bucket_bytes = static_cast<std::size_t>(config.comm.bucket_bytes),
          .topology = comm::topology_from(config.comm.topology),
          .most_micro_batches = job.sampler.most_micro_batches(),
          .leaf = config.train.leaf};
}

std::optional<Evaluator> evaluator_of(const RunConfig& config, const Job& job) {
  if (!job.data.test) return std::nullopt;
  return Evaluator(job.data.test, config.train.eval_batch);
}

/// A value of an evaluation for the progress line.
std::string shown(const std::string& name, double value) {
  char text[32];
  const bool is_ratio = name == "accuracy";
  std::snprintf(text, sizeof text, is_ratio ? "%.2f %%" : "%.4f", is_ratio ? 100 * value : value);
  return text;
}

/// `model` joins the run only if its random numbers do not come from a generator that other ranks
/// draw from too.
void refuse_shared_generator(const World& world, const Job& job) {
  if (world.ranks_are_threads() && world.size() > 1 && job.model->uses_process_generator()) {
    throw ConfigError(
        "the model draws from libtorch's process generator, which ranks that are threads share. "
        "Run the "
        "ranks as processes, or use yoke's dropout layer.");
  }
}

}  // namespace

Sitting::Sitting(const RunConfig& config, const World& world, const RunOptions& options,
                 const model::Registry& registry)
    : config_(config),
      world_(world),
      options_(options),
      faults_(FaultPlan::from_environment(world.rank(), options.folder.faults_fired())),
      communicator_(join(config, world, options)),
      job_(config, options.config_folder, registry),
      same_bits_(tensor::agree_on_fingerprint(
          world, *communicator_, tensor::fingerprint(config.train.threads, plan_text(config, job_)),
          config.train.mixed)),
      gradients_((refuse_shared_generator(world, job_), *job_.model), *communicator_,
                 gradient_options(config, job_)),
      state_(gradients_, *communicator_, optim::Optimizer::make(config.optimizer)),
      evaluator_(evaluator_of(config, job_)) {
  job_.model->train();
  folder_ = identity_of(options_.folder.root());
  restore_newest();
  first_step_ = progression_.step;
  if (leads()) {
    recorder_ = std::make_unique<Recorder>(options_.folder, world_, first_step_);
    if (at_end()) loss_ = recorder_->last_loss();
    recorder_->event("start",
                     first_step_ == 0 ? "initial weights" : cat("checkpoint step ", first_step_));
  }
}

void Sitting::restore_newest() {
  // Rank 0 chooses, so that all take the same one, and says so before it can fail.
  std::int64_t step = leads() ? checkpoint::newest_intact(options_.folder) : 0;
  communicator_->broadcast(std::as_writable_bytes(std::span(&step, 1)), 0);
  if (step < 0) return;
  const checkpoint::Reader reader(options_.folder, step);
  const std::string identity = reader.run().value("data_identity", "");
  if (identity != job_.identity) {
    throw DataError(cat("the run was trained on other data (", identity, ", now ", job_.identity,
                        "). Give it its data back, or start anew with --fresh."));
  }
  if (step > job_.total_steps) throw_gone_beyond(config_, step, job_.total_steps);
  restore(reader, state_, gradients_.buffers(), progression_);
  saved_step_ = step;
  if (leads())
    log_info("continuing from checkpoint step ", step, " in ", options_.folder.root().string());
}

bool Sitting::between_evaluations() const {
  const std::int64_t every =
      config_.train.eval_every > 0 ? config_.train.eval_every : job_.sampler.steps_per_epoch();
  return progression_.step % every != 0;
}

void Sitting::evaluate() {
  evaluation_ = evaluator_->run(*job_.model, communicator_.get());
  // Where the run ends must not show in its state: one that is longer does not evaluate there.
  if (between_evaluations()) return;
  if (evaluation_["loss"] < progression_.best_loss) {
    progression_.best_loss = evaluation_["loss"];
    progression_.best_step = progression_.step;
  }
}

void Sitting::save() {
  if (saved_step_ == progression_.step) return;
  saved_step_ = progression_.step;
  if (leads()) write_checkpoint();
  // Nobody takes rank 0 for lost because its disk is slow.
  communicator_->barrier(
      std::chrono::duration_cast<Clock::duration>(Seconds(config_.comm.save_timeout)));
}

void Sitting::require_folder() const {
  if (identity_of(options_.folder.root()) == folder_) return;
  throw IoError(cat(options_.folder.root().string(),
                    " was moved or removed while the run was training in it. Nothing more is "
                    "written; put it back and start the same command again, which goes on from the "
                    "newest checkpoint."));
}

void Sitting::write_checkpoint() {
  require_folder();
  recorder_->flush();
  const nlohmann::json extra{
      {"data_identity", job_.identity},
      {"fingerprint", tensor::fingerprint(config_.train.threads, plan_text(config_, job_)).parts}};
  checkpoint::write(options_.folder, snapshot_of(state_, gradients_.buffers(), progression_), extra,
                    {.generation = world_.generation(),
                     .world_size = world_.size(),
                     .keep_last = config_.train.keep_last},
                    faults_);
}

void Sitting::show(const StepReport& report, const std::map<std::string, double>& evaluated,
                   Progress& progress) {
  std::string text;
  for (const auto& [name, value] : evaluated)
    text += cat(text.empty() ? "" : ", ", "test ", name, " ", shown(name, value));
  const double seconds = Seconds(Clock::now() - started_).count();
  progress.show({.step = progression_.step,
                 .loss = report.outcome.loss,
                 .lr = report.lr,
                 .samples_per_second = static_cast<double>(samples_) / std::max(seconds, 1e-9),
                 .evaluation = text});
}

RunReport Sitting::run() {
  Progress progress(leads() ? options_.progress : Progress::Style::kNone, job_.total_steps,
                    first_step_);
  started_ = Clock::now();
  if (options_.on_start) options_.on_start();
  bool stop = false;
  while (!at_end() && !stop) {
    const std::int64_t step = progression_.step;
    const bool asked = options_.stop_requested != nullptr && options_.stop_requested->load();
    const StepReport report = take_step(config_, job_, gradients_, state_, step, asked, faults_);
    progression_.step = step + 1;
    samples_ += job_.sampler.samples_of_step(step);
    loss_ = report.outcome.loss;
    stop = report.outcome.stop ||
           (options_.stop_after && progression_.step - first_step_ >= *options_.stop_after);

    std::map<std::string, double> evaluated;
    if (evaluator_ && (at_end() || !between_evaluations())) {
      evaluate();
      evaluated = evaluation_;
    }
    if (leads()) {
      const bool hash_due = at_end() || (config_.train.hash_every > 0 &&
                                         progression_.step % config_.train.hash_every == 0);
      std::string hash;
      if (hash_due)
        hash = checkpoint::hashes_of(snapshot_of(state_, gradients_.buffers(), progression_))
                   .state_sha256;
      recorder_->step(job_, step, report, evaluated, hash);
      show(report, evaluated, progress);
    }
    const auto every = config_.train.checkpoint_every;
    if (every > 0 && progression_.step % every == 0) save();
  }
  // A sitting that found the run at its end has not evaluated yet.
  if (at_end() && evaluator_ && evaluation_.empty()) evaluate();
  save();
  return this->report(at_end() ? "finished" : "stopped");
}

RunReport Sitting::report(const std::string& status) {
  RunReport report;
  report.status = status;
  report.steps = progression_.step;
  report.steps_per_epoch = job_.sampler.steps_per_epoch();
  report.samples = samples_;
  report.seconds = Seconds(Clock::now() - started_).count();
  report.samples_per_second = static_cast<double>(samples_) / std::max(report.seconds, 1e-9);
  if (loss_) report.metrics["loss"] = *loss_;
  for (const auto& [name, value] : evaluation_) report.metrics["test_" + name] = value;
  Progression best = progression_;
  if (at_end() && evaluator_ && evaluation_["loss"] < best.best_loss) {
    best.best_loss = evaluation_["loss"];
    best.best_step = best.step;
  }
  if (best.best_step >= 0) {
    report.metrics["best_test_loss"] = best.best_loss;
    report.metrics["best_step"] = static_cast<double>(best.best_step);
  }
  report.promise = !same_bits_                       ? "off: workers differ (train.mixed)"
                   : config_.comm.topology == "ring" ? "off: the ring adds in another order"
                                                     : "same bits";
  const nlohmann::json traffic = gather_traffic();
  if (leads()) {
    report.state_sha256 =
        checkpoint::hashes_of(snapshot_of(state_, gradients_.buffers(), progression_)).state_sha256;
    if (status == "finished" && config_.train.sample_characters > 0 &&
        job_.data.train->shape().tokens) {
      const RandomKey key =
          RandomKey(static_cast<std::uint64_t>(config_.train.seed)).with("sample");
      report.sample = write_sample(job_, config_.train.sample_characters, key);
    }
    require_folder();
    write_report(options_.folder, report, traffic);
  }
  communicator_->barrier();
  return report;
}

nlohmann::json Sitting::gather_traffic() {
  nlohmann::json mine = nlohmann::json::array();
  for (const auto& line : communicator_->traffic()) {
    mine.push_back({{"rank", world_.rank()},
                    {"op", line.operation},
                    {"topology", line.topology},
                    {"codec", "none"},
                    {"transport", line.transport},
                    {"calls", line.calls},
                    {"payload_bytes", line.payload_bytes},
                    {"wire_bytes", line.wire_bytes},
                    {"messages", line.messages}});
  }
  auto key = [&](int rank) { return cat("traffic/", first_step_, "/", rank); };
  world_.store().set(key(world_.rank()), mine.dump());
  nlohmann::json all = nlohmann::json::array();
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  for (int rank = 0; leads() && rank < world_.size(); ++rank) {
    all.push_back(nlohmann::json::parse(world_.store().get(key(rank), deadline)));
  }
  return all;
}

RunReport run(const RunConfig& config, const World& world, const RunOptions& options,
              const model::Registry& registry) {
  return Sitting(config, world, options, registry).run();
}

}  // namespace yoke::train
