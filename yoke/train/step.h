#pragma once

#include <cstdint>

#include "yoke/base/fault.h"
#include "yoke/sync/flat_state.h"
#include "yoke/sync/gradient_sync.h"
#include "yoke/train/job.h"

namespace yoke::train {

/// Where the milliseconds of a step went, on this rank.
struct StepTimes {
  double data = 0, forward = 0, backward = 0, communicate = 0, optimize = 0;
};

struct StepReport {
  sync::GradientSync::Outcome outcome;
  double lr = 0;
  StepTimes ms;
};

/// The pure step: S_k -> S_{k+1} (design, section 2). Collective. `stop`: this rank asks all to
/// stop after this step.
StepReport take_step(const RunConfig& config, const Job& job, sync::GradientSync& gradients,
                     sync::FlatState& state, std::int64_t step, bool stop, FaultPlan& faults);

}  // namespace yoke::train
