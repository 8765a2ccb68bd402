#include "yoke/train/team.h"

#include "yoke/base/error.h"

namespace yoke::train {

namespace {

comm::CommunicatorOptions communicator_options(const RunConfig& config) {
  const auto timeout = std::chrono::duration_cast<Clock::duration>(Seconds(config.comm.timeout));
  return {.transport = comm::transport_from(config.comm.transport),
          .timeout = timeout,
          .name = "train"};
}

/// The model joins the run only if its random numbers do not come from a generator that other ranks
/// draw from too.
void refuse_shared_generator(const World& world, const Job& job) {
  if (world.ranks_are_threads() && world.size() > 1 && job.model->uses_process_generator()) {
    throw ConfigError(
        "the model draws from libtorch's process generator, which ranks that are threads share. "
        "Run the "
        "ranks as processes, or use yoke's dropout layer.");
  }
}

World enter(elastic::Membership& membership, const elastic::View& view) {
  try {
    return membership.enter(view);
  } catch (const JoinRefused& refused) {
    if (!membership.recovers()) throw;
    // The view is older than the generation that stands by now.
    throw CommunicationError(refused.what());
  }
}

}  // namespace

Team::Team(const RunConfig& config, const Job& job, const tensor::Fingerprint& fingerprint,
           elastic::Membership& membership, const elastic::View& view)
    : world_(enter(membership, view)) {
  try {
    membership.on_abort([world = world_](const std::string&) { world.cancel(); });
    communicator_ = comm::Communicator::create(world_, communicator_options(config));
    membership.on_abort([world = world_, communicator = communicator_](const std::string& reason) {
      world.cancel();
      communicator->abort(reason);
    });
    same_bits_ =
        tensor::agree_on_fingerprint(world_, *communicator_, fingerprint, config.train.mixed);
    refuse_shared_generator(world_, job);
  } catch (...) {
    membership.on_abort({});
    throw;
  }
}

void Team::exchange_gradients(const RunConfig& config, const Job& job) {
  const std::int64_t leaf = std::min(config.train.leaf, job.sampler.most_micro_batches());
  placing_ = std::make_unique<Placing>(config, (job.sampler.most_micro_batches() - 1) / leaf + 1,
                                       world_.size());
  placing_->open(world_, *communicator_);
  gradients_ = std::make_unique<sync::GradientSync>(
      *job.model, *communicator_,
      sync::GradientSyncOptions{.bucket_bytes = static_cast<std::size_t>(config.comm.bucket_bytes),
                                .topology = comm::topology_from(config.comm.topology),
                                .most_micro_batches = job.sampler.most_micro_batches(),
                                .leaf = leaf,
                                .most_blocks = placing_->most_blocks()});
}

void Team::give_back_model() {
  if (!gradients_) return;
  gradients_->buffers().reset();
  gradients_.reset();
}

}  // namespace yoke::train
