#include <algorithm>
#include <cstring>

#include "yoke/base/error.h"
#include "yoke/base/log.h"
#include "yoke/checkpoint/reader.h"
#include "yoke/observe/jsonl.h"
#include "yoke/train/sitting.h"

/// How a generation comes to the newest state that any of its workers holds (design, section 7).
namespace yoke::train {

namespace {

constexpr std::size_t kPage = 4096;

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

template <typename T>
std::vector<T> gather_values(comm::Communicator& communicator, const T& mine) {
  std::vector<T> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(std::as_bytes(std::span(&mine, 1)),
                          std::as_writable_bytes(std::span(all)));
  return all;
}

void broadcast_bytes(comm::Communicator& communicator, std::vector<std::byte>& bytes, int root) {
  std::uint64_t size = bytes.size();
  communicator.broadcast(std::as_writable_bytes(std::span(&size, 1)), root);
  bytes.resize(size);
  if (size > 0) communicator.broadcast(bytes, root);
}

}  // namespace

elastic::Standing Sitting::standing() const {
  if (!live_) return {};
  return {.live = true, .step = state_->arena().step()};
}

Remains Sitting::remains() {
  return {*state_, team_->gradients().buffers(), progression_, record_, marks_};
}

void Sitting::keep_remains() {
  if (!twins_ || !leads()) return;
  // Called in the middle of a step too: what it makes is S_{record_.step + 1}.
  const std::int64_t step = std::max(progression_.step, record_.step + 1);
  const std::int64_t before = std::exchange(progression_.step, step);
  twins_->write(step, remains().gather());
  progression_.step = before;
}

void Sitting::complete_broken_step(Team& next) {
  // In shared memory an update may have begun when its generation broke; those who know its
  // gradient are all who left the reduction, and the first of them writes what is missing.
  const bool torn = live_ && state_->shared() && state_->arena().updating();
  const std::int64_t step = torn ? state_->arena().step() : -1;
  const bool helps = torn && team_->exchanges() && team_->gradients().has_gathered(step);
  const auto all = gather_values(next.communicator(), std::int64_t{helps ? step : -1});
  const auto first = std::ranges::find_if(all, [](std::int64_t k) { return k >= 0; });
  if (first == all.end()) {
    // Nobody is left who could.
    if (torn) live_ = false;
    return;
  }
  if (helps) {
    const bool completes = first - all.begin() == next.world().rank();
    complete_step(context(), step, record_, completes);
    progression_.step = step + 1;
  }
  next.communicator().barrier();
  if (helps) state_->end_update(step);
}

std::vector<std::int64_t> Sitting::compare_steps(Team& next) {
  const std::int64_t mine = live_ ? state_->arena().step() : -1;
  // Another rank may have been first to call the state whole.
  if (live_) progression_.step = mine;
  auto steps = gather_values(next.communicator(), mine);
  // Those who hold the newest state hold it whatever happens to this generation.
  live_ = live_ && mine == std::ranges::max(steps);
  return steps;
}

void Sitting::find_state(const elastic::View& view, std::span<const std::int64_t> steps) {
  const auto newest = std::ranges::max_element(steps);
  map_host_memory();
  if (*newest >= 0) {
    faults_.reach("in_recovery", *newest);
    share_state(static_cast<int>(newest - steps.begin()), steps);
    source_ = cat("rank ", newest - steps.begin(), " at step ", *newest);
  } else if (take_host_memory()) {
    source_ = cat("memory of the host at step ", progression_.step);
  } else {
    start_from_files(view);
  }
  live_ = true;
  keep_remains();
}

void Sitting::hold_state(sync::FlatState::Origin origin) {
  if (state_) return state_->attach(team_->gradients(), team_->communicator(), origin);
  state_ = std::make_unique<sync::FlatState>(
      team_->gradients(), team_->communicator(), optim::Optimizer::make(config_.optimizer),
      host_ ? host_->bytes() : std::span<std::byte>(), origin);
}

void Sitting::share_state(int source, std::span<const std::int64_t> steps) {
  comm::Communicator& communicator = team_->communicator();
  hold_state(sync::FlatState::Origin::kKept);
  const std::int64_t newest = steps[static_cast<std::size_t>(source)];
  if (!state_->shared()) {
    std::vector<int> holders, lacking;
    for (int rank = 0; rank < communicator.size(); ++rank)
      (steps[static_cast<std::size_t>(rank)] == newest ? holders : lacking).push_back(rank);
    for (std::size_t i = 0; i < lacking.size(); ++i) {
      const int holder = holders[i % holders.size()];
      if (communicator.rank() == holder) communicator.send(state_->memory(), lacking[i]);
      if (communicator.rank() == lacking[i]) communicator.receive(state_->memory(), holder);
    }
    state_->end_update(newest - 1);
  }
  std::vector<std::byte> bytes;
  if (communicator.rank() == source) bytes = remains().gather();
  broadcast_bytes(communicator, bytes, source);
  if (communicator.rank() != source) {
    // What this rank knows of its own step, it knows for itself.
    const StepRecord own = record_;
    remains().adopt(bytes);
    if (own.step == record_.step) record_ = own;
  }
  // Who writes the lines needs the figures, not only the knowledge that somebody has them.
  if (source != 0) marks_.evaluated_step = -1;
}

void Sitting::map_host_memory() {
  if (host_ || options_.host_memory < 0 || !team_->gradients().exchange().shared()) return;
  const auto optimizer = optim::Optimizer::make(config_.optimizer);
  const std::size_t arena =
      whole_pages(sync::FlatState::memory_needed(team_->gradients(), *optimizer));
  const std::size_t twins = whole_pages(tensor::TwinSlots::bytes_needed(
      Remains::most_bytes(team_->gradients(), job_.sampler.most_micro_batches())));
  host_ = net::map_host_memory(options_.host_memory, arena + twins);
  twins_.emplace(host_->bytes().subspan(arena, twins));
}

bool Sitting::take_host_memory() {
  comm::Communicator& communicator = team_->communicator();
  std::vector<std::byte> bytes;
  if (host_ && leads()) {
    const auto step = sync::FlatState::state_in(host_->bytes(), team_->gradients(),
                                                *optim::Optimizer::make(config_.optimizer));
    if (step) bytes = twins_->read(*step).value_or(std::vector<std::byte>());
  }
  broadcast_bytes(communicator, bytes, 0);
  if (bytes.empty()) return false;
  hold_state(sync::FlatState::Origin::kKept);
  remains().adopt(bytes);
  return true;
}

void Sitting::start_from_files(const elastic::View& view) {
  comm::Communicator& communicator = team_->communicator();
  hold_state(sync::FlatState::Origin::kInitial);
  progression_ = {};
  record_ = {};
  marks_.saved_step = marks_.evaluated_step = -1;
  // Rank 0 chooses, so that all take the same one, and says so before it can fail.
  if (leads()) recovered_ = checkpoint::recover_newest(options_.folder);
  std::int64_t step = recovered_.step;
  communicator.broadcast(std::as_writable_bytes(std::span(&step, 1)), 0);
  if (step < 0) {
    // A generation that has stood may have trained, even if nobody has heard of it.
    const bool began = view.reached >= 0;
    if (began && (view.reached > 0 || JsonLines::last(options_.folder.metrics()))) {
      throw CheckpointError(
          "all workers are lost: no memory of the host holds a whole state, and there is no "
          "checkpoint. Start the same command again to begin anew; train.checkpoint_every makes "
          "the loss smaller.");
    }
    source_ = "initial weights";
    marks_.first_step = 0;
    return;
  }
  const checkpoint::Reader reader(options_.folder, step, checkpoint::Verify::kWhatIsRead);
  const std::string identity = reader.run().value("data_identity", "");
  if (identity != job_.identity) {
    throw DataError(cat("the run was trained on other data (", identity, ", now ", job_.identity,
                        "). Give it its data back, or start anew with --fresh."));
  }
  if (step > job_.total_steps) throw_gone_beyond(config_, step, job_.total_steps);
  restore(reader, *state_, team_->gradients().buffers(), progression_);
  marks_.saved_step = marks_.first_step = step;
  source_ = cat("checkpoint step ", step);
  if (leads())
    log_info("continuing from checkpoint step ", step, " in ", options_.folder.root().string());
}

}  // namespace yoke::train
