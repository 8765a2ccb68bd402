#pragma once

#include <memory>

#include "yoke/comm/communicator.h"
#include "yoke/elastic/membership.h"
#include "yoke/sync/gradient_sync.h"
#include "yoke/tensor/fingerprint.h"
#include "yoke/train/job.h"
#include "yoke/train/placing.h"
#include "yoke/train/run_config.h"

namespace yoke::train {

/// What a worker has only as long as one generation stands: its world, its communicator, and the
/// exchange of gradients with the others.
class Team {
 public:
  /// Collective over the members of `view`: joins them and compares fingerprints. An abort of the
  /// generation ends every wait from here on. The hook for that (Membership::on_abort) keeps the
  /// communicator until it is taken back.
  Team(const RunConfig& config, const Job& job, const tensor::Fingerprint& fingerprint,
       elastic::Membership& membership, const elastic::View& view);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  const World& world() const { return world_; }
  comm::Communicator& communicator() const { return *communicator_; }
  bool same_bits() const { return same_bits_; }

  /// Collective: installs the hooks on the model. Buffers become those of rank 0.
  void exchange_gradients(const RunConfig& config, const Job& job);
  bool exchanges() const { return gradients_ != nullptr; }
  sync::GradientSync& gradients() const { return *gradients_; }
  Placing& placing() const { return *placing_; }
  /// Takes the hooks off the model, which gets the buffers of S_k. What the others share with this
  /// rank stays until destruction.
  void give_back_model();

 private:
  World world_;
  std::shared_ptr<comm::Communicator> communicator_;
  bool same_bits_ = true;
  std::unique_ptr<Placing> placing_;
  std::unique_ptr<sync::GradientSync> gradients_;
};

}  // namespace yoke::train
