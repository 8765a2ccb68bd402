#pragma once

#include <string>

#include "yoke/cli/train_request.h"
#include "yoke/elastic/agent.h"
#include "yoke/elastic/coordinator.h"
#include "yoke/net/socket.h"

namespace yoke::cli {

/// `yoke train` with workers of its own on this host: the embedded coordinator, an agent in this
/// process, and the workers that it starts, all forked from here, where libtorch is loaded and has
/// not run an operation.
///
/// While it stands, `coordinator.json` in the run's folder, readable by its owner alone, says where
/// the coordinator is and what proves that one may talk to it: `yoke status`, `leave`, `resize`.
class ElasticJob {
 public:
  /// `described`: what was decided, for the first worker to say.
  ElasticJob(const TrainRequest& request, std::string described);
  ~ElasticJob();
  ElasticJob(const ElasticJob&) = delete;
  ElasticJob& operator=(const ElasticJob&) = delete;

  elastic::AgentOutcome run();

 private:
  net::ProcessSpec coordinator();
  net::ProcessSpec worker(elastic::WorkerId id, int slot);
  elastic::RosterOptions roster() const;

  const TrainRequest& request_;
  const std::string described_, job_, token_;
  net::Descriptor listening_;
  net::Address address_;
  net::Descriptor host_memory_;
};

}  // namespace yoke::cli
