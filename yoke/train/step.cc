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

/// What of the record the outcome of the reduction tells.
void fill(StepRecord& record, const StepContext& context, std::int64_t step,
          const sync::GradientSync::Outcome& outcome) {
  record.step = step;
  record.generation = context.generation;
  record.world_size = context.world_size;
  record.loss = outcome.loss;
  record.norm = outcome.norm;
  record.lr = optim::learning_rate(context.config.schedule, context.config.optimizer.lr, step,
                                   context.job.total_steps);
  record.results = *outcome.results;
}

}  // namespace

void take_step(const StepContext& context, std::int64_t step, sync::Wishes& wishes,
               StepRecord& record, const std::function<void()>& written) {
  const Job& job = context.job;
  sync::GradientSync& gradients = context.gradients;
  elastic::SectionMarks& marks = context.marks;
  StepTimes ms;
  Stopwatch watch;
  gradients.begin_step(step, job.sampler.micro_batches(step));
  const auto mine = gradients.my_micro_batches();
  for (std::int64_t v = mine.first; v < mine.first + mine.count; ++v) {
    marks.enter(elastic::Section::kData, step);
    const data::Batch batch = micro_batch(job, step, v);
    watch.into(ms.data);
    marks.enter(elastic::Section::kCompute, step);
    gradients.begin_micro_batch(v);
    const auto output = job.model->forward(model_input(*job.model, batch.input),
                                           context_of(context.config, step, v));
    const auto loss = model::cross_entropy(output, batch.target);
    watch.into(ms.forward);
    gradients.backward(loss, batch.weight);
    watch.into(ms.backward);
  }
  context.faults.reach("in_compute", step);
  marks.enter(elastic::Section::kCommunicate, step);
  const auto outcome = gradients.finish(wishes, context.faults);
  watch.into(ms.communicate);
  wishes = outcome.wishes;
  fill(record, context, step, outcome);
  record.ms = ms;
  // It may wait for others at its end; nothing of it can be stuck alone.
  context.state.update(step, record.lr,
                       optim::clip_scale(outcome.norm, context.config.train.clip_norm),
                       context.faults, written);
  watch.into(record.ms.optimize);
}

void complete_step(const StepContext& context, std::int64_t step, StepRecord& record,
                   bool completes) {
  const auto outcome = context.gradients.complete();
  if (record.step != step) fill(record, context, step, outcome);
  context.state.count_updates(step);
  if (!completes) return;
  context.state.complete_update(step, record.lr,
                                optim::clip_scale(outcome.norm, context.config.train.clip_norm));
}

}  // namespace yoke::train
