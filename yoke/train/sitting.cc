#include "yoke/train/sitting.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "yoke/base/error.h"
#include "yoke/base/log.h"
#include "yoke/checkpoint/writer.h"
#include "yoke/observe/json_text.h"
#include "yoke/tensor/worker_setup.h"
#include "yoke/train/same_settings.h"

namespace yoke::train {

namespace {

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

/// The texts of all ranks, by rank. Collective.
std::vector<std::string> gather_texts(comm::Communicator& communicator, const std::string& mine) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  const std::uint64_t length = mine.size();
  std::vector<std::uint64_t> lengths(ranks);
  communicator.all_gather(std::as_bytes(std::span(&length, 1)),
                          std::as_writable_bytes(std::span(lengths)));
  const std::uint64_t most = std::ranges::max(lengths);
  std::string padded = mine, all(most * ranks, '\0');
  padded.resize(most);
  communicator.all_gather(std::as_bytes(std::span(padded)), std::as_writable_bytes(std::span(all)));
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    texts.push_back(all.substr(rank * most, lengths[rank]));
  return texts;
}

elastic::Break break_of(const Error& error) {
  elastic::Break why{.message = error.what()};
  if (const auto* lost = dynamic_cast<const PeerLost*>(&error)) why.lost_rank = lost->rank();
  if (const auto* late = dynamic_cast<const Timeout*>(&error); late && !late->missing().empty())
    why.lost_rank = late->missing().front();
  return why;
}

}  // namespace

Sitting::Sitting(const RunConfig& config, elastic::Membership& membership,
                 const RunOptions& options, const model::Registry& registry)
    : config_(config),
      membership_(membership),
      options_(options),
      job_(config, options.config_folder, registry),
      fingerprint_(tensor::fingerprint(config.train.threads, plan_text(config, job_))),
      evaluator_(evaluator_of(config, job_)),
      folder_(identity_of(options_.folder.root())) {}

Sitting::~Sitting() {
  membership_.on_abort({});
}

RunReport Sitting::run() {
  std::optional<elastic::Break> why;
  while (const auto view = membership_.next(standing(), why)) {
    why.reset();
    try {
      enter(*view);
      if (auto report = train()) {
        membership_.done(report->status == "finished");
        return *report;
      }
    } catch (const JoinRefused&) {
      throw;
    } catch (const Error& error) {
      const bool is_of_peers = dynamic_cast<const CommunicationError*>(&error) != nullptr;
      if (!is_of_peers) membership_.failed(progression_.step);
      if (!is_of_peers || !membership_.recovers()) throw;
      log_info("generation ", view->place.generation, " is over: ", error.what());
      why = break_of(error);
    } catch (const std::exception&) {
      membership_.failed(progression_.step);
      throw;
    }
    membership_.on_abort({});
    progress_.reset();
    recorder_.reset();
  }
  RunReport report;
  report.status = "left";
  report.steps = progression_.step;
  return report;
}

void Sitting::enter(const elastic::View& view) {
  auto next = std::make_unique<Team>(config_, job_, fingerprint_, membership_, view);
  faults_ = FaultPlan::from_environment(next->world().rank(), options_.folder.faults_fired());
  complete_broken_step(*next);
  const std::vector<std::int64_t> steps = compare_steps(*next);
  if (team_) team_->give_back_model();
  job_.model->train();
  next->exchange_gradients(config_, job_);
  // From here on nobody needs what the ranks of the old generation shared.
  keep_traffic();
  std::swap(team_, next);
  next.reset();
  find_state(view, steps);
  open_records(view);
}

void Sitting::open_records(const elastic::View& view) {
  changes_ = view.changes;
  changed_ = view.since;
  if (first_generation_) started_ = Clock::now();
  if (leads()) {
    recorder_ = std::make_unique<Recorder>(options_.folder, team_->world(), progression_.step,
                                           view.reached >= 0);
    for (const auto& damage : std::exchange(recovered_.damaged, {})) {
      recorder_->event({.cause = "corrupt", .detail = cat("checkpoint step ", damage.step)},
                       cat("checkpoint step ", recovered_.step));
    }
    if (at_end()) loss_ = recorder_->last_loss();
    progress_ = std::make_unique<Progress>(options_.progress, job_.total_steps, progression_.step);
    if (first_generation_ && changes_.size() == 1 && changes_[0].cause == "start") note_changes();
  }
  if (options_.on_start) options_.on_start(team_->world());
  first_generation_ = false;
}

void Sitting::note_changes() {
  if (leads()) {
    const double resume = elastic::milliseconds_of(Clock::now() - changed_);
    for (const auto& change : changes_) recorder_->event(change, source_, resume);
    membership_.noted();
  }
  changes_.clear();
}

std::optional<RunReport> Sitting::train() {
  // What the step that made this state left undone when its generation broke.
  if (record_.step >= 0 && record_.step == progression_.step - 1) finish_step();
  sync::Wishes all;
  while (!at_end() && !all.stop) {
    membership_.hold();
    all = wishes();
    // In the words of a wish, so that all stop alike, also those that came later.
    all.stop = all.stop || (options_.stop_after &&
                            progression_.step + 1 - marks_.first_step >= *options_.stop_after);
    take_step(context(), progression_.step, all, record_, [this] { keep_remains(); });
    progression_.step = record_.step + 1;
    samples_ += job_.sampler.samples_of_step(record_.step);
    loss_ = record_.loss;
    if (!changes_.empty()) note_changes();
    finish_step();
    if (all.change && !all.stop && !at_end()) return std::nullopt;
  }
  return conclude();
}

sync::Wishes Sitting::wishes() {
  const bool signalled = options_.stop_requested != nullptr && options_.stop_requested->load();
  if (!membership_.recovers()) return {.stop = signalled};
  // A signal to one worker of an elastic run is about that worker alone.
  if (signalled && !has_left_) {
    has_left_ = true;
    membership_.leave("preempted");
  }
  return {.stop = membership_.stop_wanted(), .change = membership_.change_wanted()};
}

StepContext Sitting::context() {
  return {.config = config_,
          .job = job_,
          .gradients = team_->gradients(),
          .placing = team_->placing(),
          .state = *state_,
          .faults = faults_,
          .marks = membership_.marks(),
          .generation = team_->world().generation(),
          .world_size = team_->world().size()};
}

bool Sitting::between_evaluations() const {
  const std::int64_t every =
      config_.train.eval_every > 0 ? config_.train.eval_every : job_.sampler.steps_per_epoch();
  return progression_.step % every != 0;
}

void Sitting::evaluate() {
  membership_.marks().enter(elastic::Section::kEvaluate, progression_.step);
  evaluation_ = evaluator_->run(*job_.model, &team_->communicator());
  marks_.evaluated_step = progression_.step;
  // Where the run ends must not show in its state: one that is longer does not evaluate there.
  if (between_evaluations()) return;
  if (evaluation_["loss"] < progression_.best_loss) {
    progression_.best_loss = evaluation_["loss"];
    progression_.best_step = progression_.step;
  }
  keep_remains();
}

void Sitting::finish_step() {
  std::map<std::string, double> evaluated;
  if (evaluator_ && (at_end() || !between_evaluations())) {
    if (marks_.evaluated_step != progression_.step) evaluate();
    evaluated = evaluation_;
  }
  if (leads()) {
    const bool hash_due = at_end() || (config_.train.hash_every > 0 &&
                                       progression_.step % config_.train.hash_every == 0);
    std::string hash;
    if (hash_due) {
      hash = checkpoint::hashes_of(snapshot_of(*state_, team_->gradients().buffers(), progression_))
                 .state_sha256;
    }
    recorder_->step(job_, record_, evaluated, hash);
    show(evaluated);
  }
  const auto every = config_.train.checkpoint_every;
  if (every > 0 && progression_.step % every == 0) save();
}

void Sitting::save() {
  if (marks_.saved_step == progression_.step) return;
  membership_.marks().enter(elastic::Section::kCheckpoint, progression_.step);
  if (leads()) write_checkpoint();
  // Nobody takes rank 0 for lost because its disk is slow.
  membership_.marks().enter(elastic::Section::kCommunicate, progression_.step);
  team_->communicator().barrier(
      std::chrono::duration_cast<Clock::duration>(Seconds(config_.comm.save_timeout)));
  marks_.saved_step = progression_.step;
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
  const nlohmann::json extra{{"data_identity", job_.identity}, {"fingerprint", fingerprint_.parts}};
  checkpoint::write(options_.folder,
                    snapshot_of(*state_, team_->gradients().buffers(), progression_), extra,
                    {.generation = team_->world().generation(),
                     .world_size = team_->world().size(),
                     .keep_last = config_.train.keep_last,
                     .keep_every = config_.train.keep_every,
                     .keep_best = config_.train.keep_best,
                     .evaluation_loss = marks_.evaluated_step == progression_.step
                                            ? std::optional(evaluation_["loss"])
                                            : std::nullopt,
                     // One that was declared dead meanwhile must not put it in its place.
                     .may_commit = [this](std::uint64_t) { return membership_.acts(); }},
                    faults_);
}

void Sitting::show(const std::map<std::string, double>& evaluated) {
  std::string text;
  for (const auto& [name, value] : evaluated)
    text += cat(text.empty() ? "" : ", ", "test ", name, " ", shown(name, value));
  const double seconds = Seconds(Clock::now() - started_).count();
  progress_->show({.step = progression_.step,
                   .loss = record_.loss,
                   .lr = record_.lr,
                   .samples_per_second = static_cast<double>(samples_) / std::max(seconds, 1e-9),
                   .evaluation = text});
}

RunReport Sitting::conclude() {
  // A sitting that found the run at its end has not evaluated yet.
  if (at_end() && evaluator_ && marks_.evaluated_step != progression_.step) evaluate();
  save();
  RunReport report;
  report.status = at_end() ? "finished" : "stopped";
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
  report.promise = !team_->same_bits()               ? "off: workers differ (train.mixed)"
                   : config_.comm.topology == "ring" ? "off: the ring adds in another order"
                                                     : "same bits";
  const nlohmann::json traffic = gather_traffic();
  if (leads()) {
    if (!changes_.empty()) note_changes();
    report.state_sha256 =
        checkpoint::hashes_of(snapshot_of(*state_, team_->gradients().buffers(), progression_))
            .state_sha256;
    if (report.status == "finished" && config_.train.sample_characters > 0 &&
        job_.data.train->shape().tokens) {
      const RandomKey key =
          RandomKey(static_cast<std::uint64_t>(config_.train.seed)).with("sample");
      report.sample = write_sample(job_, config_.train.sample_characters, key);
    }
    require_folder();
    write_report(options_.folder, report, traffic);
  }
  membership_.marks().enter(elastic::Section::kCommunicate, progression_.step);
  team_->communicator().barrier();
  return report;
}

void Sitting::keep_traffic() {
  if (!team_) return;
  for (const auto& line : team_->communicator().traffic()) {
    const auto same = [&](const comm::TrafficLine& other) {
      return other.operation == line.operation && other.topology == line.topology &&
             other.transport == line.transport;
    };
    const auto found = std::ranges::find_if(traffic_, same);
    if (found == traffic_.end()) {
      traffic_.push_back(line);
      continue;
    }
    found->calls += line.calls;
    found->payload_bytes += line.payload_bytes;
    found->wire_bytes += line.wire_bytes;
    found->messages += line.messages;
  }
}

nlohmann::json Sitting::gather_traffic() {
  keep_traffic();
  nlohmann::json mine = nlohmann::json::array();
  for (const auto& line : std::exchange(traffic_, {})) {
    mine.push_back({{"rank", team_->world().rank()},
                    {"op", line.operation},
                    {"topology", line.topology},
                    {"codec", "none"},
                    {"transport", line.transport},
                    {"calls", line.calls},
                    {"payload_bytes", line.payload_bytes},
                    {"wire_bytes", line.wire_bytes},
                    {"messages", line.messages}});
  }
  const std::vector<std::string> texts = gather_texts(team_->communicator(), json_text(mine));
  nlohmann::json all = nlohmann::json::array();
  for (const std::string& text : texts) all.push_back(nlohmann::json::parse(text));
  return all;
}

RunReport run(const RunConfig& config, elastic::Membership& membership, const RunOptions& options,
              const model::Registry& registry) {
  tensor::set_up_worker(config.train.threads);
  return Sitting(config, membership, options, registry).run();
}

RunReport run(const RunConfig& config, const World& world, const RunOptions& options,
              const model::Registry& registry) {
  require_same_settings(world, config, options);
  elastic::FixedMembership membership(world);
  return run(config, membership, options, registry);
}

}  // namespace yoke::train
