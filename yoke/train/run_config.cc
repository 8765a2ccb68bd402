#include "yoke/train/run_config.h"

#include <array>
#include <limits>

#include "yoke/base/error.h"
#include "yoke/elastic/placement/make_policy.h"

namespace yoke::train {

namespace {

/// Larger factors are no numbers that float32 can work with, infinity among them.
constexpr double kLargest = 1e30;

void bind_data(ConfigTree& tree, RunConfig& c) {
  tree.add("data.kind", &c.data.kind,
           "format of the data: csv (label in the last column), idx (MNIST's), text",
           {"csv", "idx", "text"});
  tree.add("data.path", &c.data.path, "the file; for idx the images");
  tree.add("data.labels", &c.data.labels, "idx: the labels");
  tree.add("data.test_path", &c.data.test_path,
           "file to evaluate on; empty: a hold-out of the data");
  tree.add("data.test_labels", &c.data.test_labels, "idx: its labels");
  tree.add("data.hold_out", &c.data.hold_out,
           "part of the data kept for evaluation where there is no test file",
           Range<double>{0.0, 0.9});
  tree.add("data.hold_out_seed", reinterpret_cast<std::int64_t*>(&c.data.hold_out_seed),
           "csv: draws the hold-out", Range<std::int64_t>{0, {}});
  tree.add("data.length", &c.data.length, "text: characters of a sample",
           Range<std::int64_t>{1, 1 << 20});
  tree.add("data.scale", &c.data.scale, "factor of the inputs", Range<double>{-kLargest, kLargest});
  tree.add("data.drop_last", &c.drop_last, "leave out the short batch at the end of an epoch");
}

void bind_model(ConfigTree& tree, RunConfig& c) {
  tree.add("model.name", &c.model.name, "mlp, cnn, gpt, or a model that the program registered");
  tree.add("model.dtype", &c.model.dtype, "element type of the parameters", {"float32", "float64"});
  tree.add("model.hidden", &c.model.hidden, "mlp: width of the hidden layers",
           Range<std::int64_t>{1, 1 << 20});
  tree.add("model.depth", &c.model.depth, "mlp: hidden layers; gpt: blocks",
           Range<std::int64_t>{0, 1000});
  tree.add("model.channels", &c.model.channels, "cnn: channels of the first convolution",
           Range<std::int64_t>{1, 1 << 16});
  tree.add("model.width", &c.model.width, "gpt: width of the embedding",
           Range<std::int64_t>{1, 1 << 20});
  tree.add("model.heads", &c.model.heads, "gpt: attention heads", Range<std::int64_t>{1, 1 << 10});
  tree.add("model.dropout", &c.model.dropout, "part of the activations that is dropped",
           Range<double>{0.0, 0.99});
}

void bind_train(ConfigTree& tree, RunConfig& c) {
  auto& t = c.train;
  const Range<std::int64_t> positive{1, {}};
  const Range<std::int64_t> not_negative{0, {}};
  tree.add("train.seed", &t.seed, "of weights, order of samples and dropout", not_negative);
  tree.add("train.batch", &t.batch, "samples of a global batch, whatever the number of workers",
           positive);
  tree.add("train.micro_batch", &t.micro_batch,
           "samples of a micro-batch; 0: an eighth of the batch", not_negative);
  tree.add("train.leaf", &t.leaf, "micro-batches of a leaf, the unit that is placed on workers",
           positive);
  tree.add("train.epochs", &t.epochs, "length of the run", Range<std::int64_t>{1, 1'000'000'000});
  tree.add("train.steps", &t.steps, "length of the run in steps; 0: by epochs", not_negative);
  tree.add("train.threads", &t.threads,
           "threads of each worker inside an operation; other numbers give other bits",
           Range<std::int64_t>{1, 1024});
  tree.add("train.eval_every", &t.eval_every,
           "steps between evaluations; 0: at the end of each epoch", not_negative);
  tree.add("train.eval_batch", &t.eval_batch, "samples of a micro-batch of evaluation", positive);
  tree.add("train.hash_every", &t.hash_every,
           "steps between hashes of the state in metrics.jsonl; 0: none", not_negative);
  tree.add("train.checkpoint_every", &t.checkpoint_every,
           "steps between checkpoints; 0: at the end, and when stopped", not_negative);
  tree.add("train.keep_last", &t.keep_last, "checkpoints that are kept", positive);
  tree.add("train.keep_every", &t.keep_every,
           "steps: checkpoints of multiples are kept for ever; 0: none are", not_negative);
  tree.add("train.keep_best", &t.keep_best,
           "checkpoints with the lowest evaluation loss that are kept besides", not_negative);
  tree.add("train.clip_norm", &t.clip_norm, "largest global norm of the gradient; 0: no clipping",
           Range<double>{0.0, kLargest});
  tree.add("train.mixed", &t.mixed,
           "let workers join that would compute other bits; the promise is off");
  tree.add("train.sample_characters", &t.sample_characters,
           "text: characters that the model writes at the end", Range<std::int64_t>{0, 100000});
}

void bind_optimizer(ConfigTree& tree, RunConfig& c) {
  auto& o = c.optimizer;
  const Range<double> rate{0.0, kLargest};
  tree.add("optimizer.name", &o.name, "the optimizer", {"sgd", "adam", "adamw"});
  tree.add("optimizer.lr", &o.lr, "learning rate at its peak", rate);
  tree.add("optimizer.momentum", &o.momentum, "sgd", Range<double>{0.0, 1.0});
  tree.add("optimizer.dampening", &o.dampening, "sgd", Range<double>{0.0, 1.0});
  tree.add("optimizer.nesterov", &o.nesterov, "sgd: Nesterov's momentum");
  tree.add("optimizer.weight_decay", &o.weight_decay,
           "sgd, adam: added to the gradient; adamw: decoupled", rate);
  tree.add("optimizer.beta1", &o.beta1, "adam, adamw", Range<double>{0.0, 1.0});
  tree.add("optimizer.beta2", &o.beta2, "adam, adamw", Range<double>{0.0, 1.0});
  tree.add("optimizer.epsilon", &o.epsilon, "adam, adamw", rate);
  auto& s = c.schedule;
  tree.add("schedule.name", &s.name, "how the learning rate changes",
           {"constant", "step", "cosine", "linear"});
  tree.add("schedule.warmup", &s.warmup, "steps of linear warm-up", Range<std::int64_t>{0, {}});
  tree.add("schedule.step_size", &s.step_size, "step: steps between two decreases",
           Range<std::int64_t>{1, {}});
  tree.add("schedule.gamma", &s.gamma, "step: factor of a decrease", rate);
  tree.add("schedule.final_ratio", &s.final_ratio,
           "cosine, linear: last learning rate over the peak", Range<double>{0.0, 1.0});
}

void bind_comm(ConfigTree& tree, RunConfig& c) {
  tree.add("comm.transport", &c.comm.transport,
           "auto: shared memory if all workers are on one host, else tcp", {"auto", "shm", "tcp"});
  tree.add("comm.topology", &c.comm.topology,
           "shape of the gradient's reduction; ring gives up the promise",
           {"auto", "full_mesh", "tree", "ring"});
  tree.add("comm.bucket_bytes", &c.comm.bucket_bytes,
           "tcp: bytes of gradient that are sent at once", Range<std::int64_t>{1, {}});
  const Range<double> seconds{0.1, 86400.0};
  tree.add("comm.timeout", &c.comm.timeout, "seconds after which a collective gives up", seconds);
  tree.add("comm.save_timeout", &c.comm.save_timeout,
           "seconds that the other workers wait while a checkpoint is written", seconds);
}

void bind_elastic(ConfigTree& tree, RunConfig& c) {
  auto& e = c.elastic;
  tree.add("elastic.restarts", &e.restarts,
           "failures in a row, without a step between them, that are answered by a new worker; 0: "
           "the first one ends the run",
           Range<std::int64_t>{0, 1000});
  tree.add("elastic.min_workers", &e.min_workers, "with fewer, training pauses until one comes",
           Range<std::int64_t>{1, 4096});
  tree.add("elastic.lease", &e.lease,
           "seconds of silence after which a worker is declared dead; it stops acting before that",
           Range<double>{0.2, 3600.0});
  tree.add("elastic.hang_timeout", &e.hang_timeout,
           "seconds that a worker may stay in one section of a step, at least",
           Range<double>{0.2, 86400.0});
  tree.add("elastic.hang_factor", &e.hang_factor,
           "the same over the longest stay in that section so far", Range<double>{1.0, 1000.0});
  tree.add("elastic.placement", &e.placement, "which worker computes which leaves",
           elastic::placement_names());
  tree.add("elastic.weights", &e.weights,
           "weighted: each rank's share, with commas between; a rank without one has 1");
}

}  // namespace

void bind(ConfigTree& tree, RunConfig& config) {
  bind_data(tree, config);
  bind_model(tree, config);
  bind_train(tree, config);
  bind_optimizer(tree, config);
  bind_comm(tree, config);
  bind_elastic(tree, config);
}

void check(const RunConfig& config) {
  if (config.data.path.empty())
    throw ConfigError("data.path is not set: name the file to train on.");
  if (config.micro_batch() > config.train.batch) {
    throw ConfigError(cat("train.micro_batch is ", config.micro_batch(),
                          ", more than train.batch, ", config.train.batch, "."));
  }
  optim::Optimizer::make(config.optimizer);
  elastic::weights_from(config.elastic.weights);
  constexpr auto kUnknown = std::numeric_limits<std::int64_t>::max();
  optim::learning_rate(config.schedule, config.optimizer.lr, 0,
                       config.train.steps > 0 ? config.train.steps : kUnknown);
}

void throw_gone_beyond(const RunConfig& config, std::int64_t done, std::int64_t asked) {
  throw ConfigError(cat("the run has gone ", done, " steps, more than the ", asked, " that ",
                        config.train.steps > 0 ? "train.steps (--steps)" : "train.epochs",
                        " asks for. Ask for ", done,
                        " or more, choose another --run, or start anew with --fresh (the old "
                        "folder is kept)."));
}

bool is_plan_key(std::string_view key, const RunConfig& config) {
  if (key == "train.steps" || key == "train.epochs") {
    return optim::depends_on_length(config.schedule);
  }
  // Where the data lies does not matter, what it is does: its identity is compared on its own.
  constexpr std::array kOther = {"data.path",
                                 "data.labels",
                                 "data.test_path",
                                 "data.test_labels",
                                 "train.hash_every",
                                 "train.checkpoint_every",
                                 "train.keep_last",
                                 "train.keep_every",
                                 "train.keep_best",
                                 "train.mixed",
                                 "train.sample_characters",
                                 "comm.transport",
                                 "comm.topology",
                                 "comm.bucket_bytes",
                                 "comm.timeout",
                                 "comm.save_timeout"};
  if (key.starts_with("elastic.")) return false;
  for (const std::string_view other : kOther) {
    if (key == other) return false;
  }
  return true;
}

}  // namespace yoke::train
