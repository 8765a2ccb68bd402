#pragma once

#include <cstdint>

#include <functional>
#include <vector>

#include "yoke/base/fault.h"
#include "yoke/elastic/section.h"
#include "yoke/sync/flat_state.h"
#include "yoke/sync/gradient_sync.h"
#include "yoke/train/job.h"
#include "yoke/train/placing.h"

namespace yoke::train {

/// Where the milliseconds of a step went, on this rank.
struct StepTimes {
  double data = 0, forward = 0, backward = 0, communicate = 0, optimize = 0;
};

/// How a step went, as the lines of metrics.jsonl and ledger.jsonl tell it. Every rank knows it, so
/// that none of the lines dies with the rank that writes them.
struct StepRecord {
  std::int64_t step = -1;  ///< -1: none
  std::uint64_t generation = 0;
  int world_size = 1;
  double loss = 0, lr = 0, norm = 0;
  StepTimes ms;  ///< of the rank that keeps the record
  std::vector<sync::Summary::Result> results;
};

/// What one rank's step is given besides S_k.
struct StepContext {
  const RunConfig& config;
  const Job& job;
  sync::GradientSync& gradients;
  Placing& placing;
  sync::FlatState& state;
  FaultPlan& faults;
  elastic::SectionMarks& marks;
  std::uint64_t generation = 0;
  int world_size = 1;
};

/// The pure step: S_k -> S_{k+1} (design, section 2). Collective; `wishes` becomes those of all
/// ranks. `record` is filled when the step can no longer fail, before `written` is called
/// (FlatState::update).
void take_step(const StepContext& context, std::int64_t step, sync::Wishes& wishes,
               StepRecord& record, const std::function<void()>& written = {});

/// The end of a step that broke off in its update: see FlatState::complete_update. `completes`:
/// this rank writes what others have left.
void complete_step(const StepContext& context, std::int64_t step, StepRecord& record,
                   bool completes);

}  // namespace yoke::train
