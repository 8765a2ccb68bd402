#include "yoke/train/step.h"

#include "yoke/base/clock.h"
#include "yoke/optim/norm.h"
#include "yoke/optim/schedule.h"
#include "yoke/train/model_input.h"

namespace yoke::train {

namespace {

/// Adds the time since the last call to one of the sums.
class Stopwatch {
 public:
  void into(double& milliseconds) {
    const auto now = Clock::now();
    milliseconds += std::chrono::duration<double, std::milli>(now - last_).count();
    last_ = now;
  }

 private:
  Clock::time_point last_ = Clock::now();
};

}  // namespace

StepReport take_step(const RunConfig& config, const Job& job, sync::GradientSync& gradients,
                     sync::FlatState& state, std::int64_t step, bool stop, FaultPlan& faults) {
  StepReport report;
  Stopwatch watch;
  gradients.begin_step(step, job.sampler.micro_batches(step));
  const auto mine = gradients.my_micro_batches();
  for (std::int64_t v = mine.first; v < mine.first + mine.count; ++v) {
    const data::Batch batch = micro_batch(job, step, v);
    watch.into(report.ms.data);
    gradients.begin_micro_batch(v);
    const auto output =
        job.model->forward(model_input(*job.model, batch.input), context_of(config, step, v));
    const auto loss = model::cross_entropy(output, batch.target);
    watch.into(report.ms.forward);
    gradients.backward(loss, batch.weight);
    watch.into(report.ms.backward);
  }
  report.outcome = gradients.finish(stop, faults);
  watch.into(report.ms.communicate);
  report.lr = optim::learning_rate(config.schedule, config.optimizer.lr, step, job.total_steps);
  state.update(step, report.lr, optim::clip_scale(report.outcome.norm, config.train.clip_norm),
               faults);
  watch.into(report.ms.optimize);
  return report;
}

}  // namespace yoke::train
