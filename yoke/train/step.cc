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

void compute(const StepContext& context, std::int64_t step, std::int64_t v, StepTimes& ms) {
  const Job& job = context.job;
  Stopwatch watch;
  context.marks.enter(elastic::Section::kData, step);
  const data::Batch batch = micro_batch(job, step, v);
  watch.into(ms.data);
  context.marks.enter(elastic::Section::kCompute, step);
  context.gradients.begin_micro_batch(v);
  const auto output = job.model->forward(model_input(*job.model, batch.input),
                                         context_of(context.config, step, v));
  const auto loss = model::cross_entropy(output, batch.target);
  watch.into(ms.forward);
  context.gradients.backward(loss, batch.weight);
  watch.into(ms.backward);
}

/// Draws blocks until there are none. One that another has done meanwhile is dropped, at the next
/// micro-batch.
void compute_drawn(const StepContext& context, std::int64_t step, StepTimes& ms) {
  sync::GradientSync& gradients = context.gradients;
  elastic::LeafDraws& draws = context.placing.draws();
  const std::int64_t micro_batches = context.job.sampler.micro_batches(step);
  gradients.begin_open_step(step, micro_batches);
  draws.begin(gradients.leaves_of(micro_batches));
  while (const auto draw = draws.next()) {
    const auto mine = gradients.begin_block(draw->block.level, draw->block.index);
    bool overtaken = false;
    for (std::size_t i = 0; i < mine.size() && !overtaken; ++i) {
      compute(context, step, mine[i], ms);
      overtaken = i + 1 < mine.size() && draws.overtaken();
    }
    if (overtaken) {
      gradients.drop_block();
    } else {
      gradients.keep_block();
      draws.finish();
    }
  }
}

void compute_mine(const StepContext& context, std::int64_t step, StepTimes& ms) {
  sync::GradientSync& gradients = context.gradients;
  const std::int64_t micro_batches = context.job.sampler.micro_batches(step);
  if (context.placing.in_step()) {
    compute_drawn(context, step, ms);
  } else {
    gradients.begin_step(step, micro_batches,
                         context.placing.plan(gradients.leaves_of(micro_batches), step));
    for (const std::int64_t v : gradients.my_micro_batches()) compute(context, step, v, ms);
  }
  gradients.set_seconds((ms.data + ms.forward + ms.backward) / 1000);
}

}  // namespace

void take_step(const StepContext& context, std::int64_t step, sync::Wishes& wishes,
               StepRecord& record, const std::function<void()>& written) {
  sync::GradientSync& gradients = context.gradients;
  elastic::SectionMarks& marks = context.marks;
  StepTimes ms;
  compute_mine(context, step, ms);
  Stopwatch watch;
  context.faults.reach("in_compute", step);
  marks.enter(elastic::Section::kCommunicate, step);
  const auto outcome = gradients.finish(wishes, context.faults);
  watch.into(ms.communicate);
  wishes = outcome.wishes;
  fill(record, context, step, outcome);
  record.ms = ms;
  context.placing.note(record.results, context.config.train.leaf, gradients.seconds());
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
