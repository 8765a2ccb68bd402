#include <algorithm>
#include <iomanip>
#include <sstream>

#include "yoke/base/text.h"
#include "yoke/comm/block_plan.h"
#include "yoke/comm/communicator.h"
#include "yoke/sync/model_tensors.h"
#include "yoke/train/job.h"
#include "yoke/train/run.h"

namespace yoke::train {

namespace {

/// Two columns, as llm.c prints them: everything that was decided, before anything runs.
class Table {
 public:
  template <typename... Parts>
  void row(const std::string& name, const Parts&... parts) {
    out_ << "  " << std::left << std::setw(18) << name << cat(parts...) << '\n';
  }
  std::string text() const { return out_.str(); }

 private:
  std::ostringstream out_;
};

std::string counted(std::int64_t number, const char* one, const char* many) {
  return cat(number, ' ', number == 1 ? one : many);
}

std::string placement(const Job& job, const RunConfig& config, int world_size) {
  const std::int64_t micro_batches = job.sampler.most_micro_batches();
  const std::int64_t leaves = (micro_batches - 1) / config.train.leaf + 1;
  const auto plan = comm::BlockPlan::even(leaves, world_size);
  const auto idle = std::max<std::int64_t>(world_size - leaves, 0);
  const std::string rest = idle == 0 ? "" : cat("; ", idle, " without work");
  std::string text;
  for (int rank = 0; rank < world_size; ++rank) {
    const auto [first, count] = plan.range_of(rank);
    if (rank == 8) return cat(text, ", ...", rest);
    text += cat(rank ? ", " : "", "rank ", rank, ": ",
                count == 0 ? "none" : cat(first, "-", first + count - 1));
  }
  return text + rest;
}

}  // namespace

std::string describe(const RunConfig& config, int world_size, const model::Registry& registry,
                     const std::string& config_folder) {
  const Job job(config, config_folder, registry);
  const sync::ModelTensors tensors(*job.model);
  const auto elements = [](const auto&... groups) {
    std::int64_t sum = 0;
    for (const auto* group : {&groups...}) {
      for (const auto& named : *group) sum += named.tensor.numel();
    }
    return sum;
  };
  const std::int64_t parameters = elements(tensors.trainable, tensors.frozen);
  const std::int64_t buffers = elements(tensors.averaged, tensors.agreed);
  const std::int64_t batch = std::min(config.train.batch, job.data.train->size());
  const std::int64_t micro_batches = job.sampler.most_micro_batches();

  Table table;
  table.row("data", config.data.kind, ", ", config.data.path, ", ", job.data.train->size(),
            " samples to train on, ",
            job.data.test
                ? cat(job.data.test->size(), " to test on",
                      config.data.test_path.empty()
                          ? cat(" (held out: ", config.data.hold_out * 100, " % of the data)")
                          : cat(" (", config.data.test_path, ")"))
                : std::string("none to test on"));
  table.row("model", config.model.name, ", ", parameters, " parameters, ", buffers, " in buffers, ",
            config.model.dtype);
  table.row(
      "batch", batch, " samples = ", micro_batches, " micro-batches of ", config.micro_batch(),
      batch % config.micro_batch() ? cat(" (the last of ", batch % config.micro_batch(), ")") : "");
  if (batch < config.train.batch) {
    table.row("", "(train.batch is ", config.train.batch,
              "; the data has no more samples: each step takes all of them)");
  }
  table.row("leaves", counted(config.train.leaf, "micro-batch", "micro-batches"), " each; ",
            placement(job, config, world_size));
  table.row("steps", job.total_steps, ", ", job.sampler.steps_per_epoch(), " an epoch");
  table.row(
      "optimizer", config.optimizer.name, ", lr ", config.optimizer.lr, ", ", config.schedule.name,
      " schedule",
      config.schedule.warmup ? cat(" with ", config.schedule.warmup, " steps of warm-up") : "",
      config.train.clip_norm > 0 ? cat(", clipped to norm ", config.train.clip_norm) : "");
  table.row("seed", config.train.seed);
  table.row("workers", world_size, ", ", counted(config.train.threads, "thread", "threads"),
            " each");
  table.row("communication", "transport ", config.comm.transport, ", topology ",
            config.comm.topology, ", buckets of ", config.comm.bucket_bytes, " bytes (tcp)");
  table.row("promise", config.comm.topology == "ring" ? "off: the ring adds in another order"
                       : config.train.mixed           ? "off if workers differ (train.mixed)"
                                                      : "the same bits for any number of workers");
  return table.text();
}

}  // namespace yoke::train
