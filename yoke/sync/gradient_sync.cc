#include "yoke/sync/gradient_sync.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/torch.h>

#include <cmath>

#include "yoke/base/error.h"
#include "yoke/optim/norm.h"
#include "yoke/sync/squares.h"
#include "yoke/tensor/bridge.h"

namespace yoke::sync {

namespace {

std::int64_t count_leaves(std::int64_t micro_batches, std::int64_t leaf) {
  return micro_batches / leaf + (micro_batches % leaf != 0 ? 1 : 0);
}

/// A leaf that is larger than a step is the step.
GradientSyncOptions bounded(GradientSyncOptions options, int ranks) {
  options.leaf = std::min(options.leaf, options.most_micro_batches);
  if (options.most_blocks == 0) options.most_blocks = most_blocks(options, ranks);
  return options;
}

void broadcast_buffers(const std::vector<NamedTensor>& buffers, comm::Communicator& communicator) {
  torch::NoGradGuard no_grad;
  for (const auto& buffer : buffers) {
    at::Tensor copy = buffer.tensor.detach().clone(at::MemoryFormat::Contiguous);
    communicator.broadcast(tensor::mutable_bytes_of(copy), 0);
    at::Tensor(buffer.tensor).copy_(copy);
  }
}

}  // namespace

int most_blocks(const GradientSyncOptions& options, int ranks) {
  // Blocks are most numerous somewhere between a full step and the short one at the end of an
  // epoch: look at all.
  int most = 1;
  for (std::int64_t leaves = 1; leaves <= count_leaves(options.most_micro_batches, options.leaf);
       ++leaves) {
    most = std::max(most, comm::BlockPlan::even(leaves, ranks).most_blocks());
  }
  return most;
}

/// Fires when a parameter's `.grad` is final for the micro-batch, in the thread that called
/// backward().
class GradientSync::Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(GradientSync& sync, std::size_t parameter) : sync_(sync), parameter_(parameter) {}
  void operator()(const torch::autograd::Variable& tensor) override {
    sync_.on_gradient(parameter_, tensor);
  }

 private:
  GradientSync& sync_;
  std::size_t parameter_;
};

GradientSync::GradientSync(torch::nn::Module& module, comm::Communicator& communicator,
                           const GradientSyncOptions& options)
    : communicator_(communicator),
      options_(bounded(options, communicator.size())),
      tensors_(module),
      list_(tensors_.tied.empty() ? nullptr : dynamic_cast<model::LayerList*>(&module)),
      layout_(tensors_.gradient_layout()),
      buffers_(tensors_, tensors_.trainable.size()),
      exchange_(Exchange::make(communicator, layout_,
                               {.bucket_bytes = options.bucket_bytes,
                                .topology = options.topology,
                                .parameters = tensors_.trainable.size(),
                                .most_blocks = options_.most_blocks,
                                .added = tied_uses()})),
      folder_(layout_, [this](int b) { return exchange_->block(b); }),
      summary_({.tensors = layout_.size(),
                .integers = buffers_.integer_bytes(),
                .results = static_cast<std::size_t>(options_.most_micro_batches),
                .blocks = static_cast<std::size_t>(options_.most_blocks),
                .checks = static_cast<std::size_t>(options_.most_checks)}),
      plan_(comm::BlockPlan::even(1, communicator.size())) {
  broadcast_buffers(tensors_.averaged, communicator);
  broadcast_buffers(tensors_.agreed, communicator);
  buffers_.adopt();
  for (std::size_t i = 0; i < tensors_.trainable.size(); ++i) {
    tensors_.trainable[i].tensor.mutable_grad().reset();
    torch::autograd::impl::set_post_acc_grad_hooks(tensors_.trainable[i].tensor,
                                                   std::make_unique<Hook>(*this, i));
  }
  if (list_ != nullptr) list_->separate_uses(true);
}

GradientSync::~GradientSync() {
  if (list_ != nullptr) list_->separate_uses(false);
  for (auto& parameter : tensors_.trainable)
    torch::autograd::impl::set_post_acc_grad_hooks(parameter.tensor, nullptr);
}

std::int64_t GradientSync::leaves_of(std::int64_t micro_batches) const {
  return count_leaves(micro_batches, options_.leaf);
}

void GradientSync::begin_step(std::int64_t step, std::int64_t micro_batches) {
  const std::int64_t leaves = leaves_of(micro_batches);
  if (leaves != plan_.leaves()) plan_ = comm::BlockPlan::even(leaves, communicator_.size());
  begin_step(step, micro_batches, plan_);
}

void GradientSync::begin_step(std::int64_t step, std::int64_t micro_batches,
                              const comm::BlockPlan& plan) {
  begin(step, micro_batches);
  YOKE_ENSURE(plan.leaves() == leaves_of(micro_batches) &&
                  plan.most_blocks() <= options_.most_blocks,
              "a plan of ", plan.leaves(), " leaves, ", plan.most_blocks(), " blocks a rank");
  schedule_ = LeafSchedule(plan, communicator_.rank());
  own_leaves_ = schedule_.leaves().size();
  schedule_micro_batches(0);
  exchange_->begin(HeldBlocks::in_order(plan));
}

void GradientSync::begin_open_step(std::int64_t step, std::int64_t micro_batches) {
  begin(step, micro_batches);
  open_ = true;
  exchange_->begin_open();
}

void GradientSync::begin(std::int64_t step, std::int64_t micro_batches) {
  YOKE_ENSURE(micro_batches > 0 && micro_batches <= options_.most_micro_batches, micro_batches,
              " micro-batches");
  step_ = step;
  micro_batches_ = micro_batches;
  open_ = false;
  schedule_ = {};
  own_leaves_ = leaf_ = done_ = 0;
  mine_.clear();
  block_.reset();
  held_ = 0;
  current_ = -1;
  watched_.clear();
  check_.reset();
  gathered_ = completed_ = false;
  summary_.clear();
  folder_.begin_step();
}

std::span<const std::int64_t> GradientSync::schedule_micro_batches(std::size_t first_leaf) {
  const std::size_t before = mine_.size();
  for (const auto& leaf : schedule_.leaves().subspan(first_leaf)) {
    const std::int64_t end = std::min((leaf.leaf + 1) * options_.leaf, micro_batches_);
    for (std::int64_t v = leaf.leaf * options_.leaf; v < end; ++v) mine_.push_back(v);
  }
  return std::span(mine_).subspan(before);
}

std::span<const std::int64_t> GradientSync::begin_block(int level, std::int64_t index) {
  YOKE_ENSURE(open_ && !block_ && done_ == mine_.size(), "a block within another");
  block_ = comm::Block{.level = level, .index = index, .owner = communicator_.rank()};
  schedule_.append(*block_, held_);
  const std::size_t first = std::exchange(own_leaves_, schedule_.leaves().size());
  return schedule_micro_batches(first);
}

void GradientSync::keep_block() {
  YOKE_ENSURE(block_ && done_ == mine_.size(), "a block is kept when all of it is computed");
  summary_.add(*block_, held_++);
  block_.reset();
}

void GradientSync::drop_block() {
  YOKE_ENSURE(block_ && current_ < 0, "a block is dropped between two micro-batches");
  folder_.drop_block();
  block_.reset();
  check_.reset();
  leaf_ = own_leaves_;
  done_ = mine_.size();
}

std::span<const std::int64_t> GradientSync::begin_check(std::int64_t leaf) {
  watched_.insert(leaf);
  schedule_.append_check(leaf);
  return schedule_micro_batches(schedule_.leaves().size() - 1);
}

void GradientSync::begin_micro_batch(std::int64_t micro_batch) {
  YOKE_ENSURE(done_ < mine_.size() && micro_batch == mine_[done_], "micro-batch ", micro_batch,
              ": those of a rank come in their order");
  current_ = micro_batch;
  if (micro_batch % options_.leaf == 0) {
    const auto& leaf = schedule_.leaves()[leaf_];
    check_.reset();
    if (watched_.contains(leaf.leaf)) check_ = LeafCheck{.leaf = leaf.leaf};
    hash_ = {};
    folder_.watch(check_ ? &hash_ : nullptr);
    folder_.begin_leaf(leaf, !open_ && leaf_ + 1 == own_leaves_);
  }
  buffers_.reset();
}

void GradientSync::note_input(std::uint64_t hash) {
  if (check_) check_->input = check_->input * 31 + hash;
}

bool GradientSync::last_of_leaf() const {
  return (current_ + 1) % options_.leaf == 0 || current_ + 1 == micro_batches_;
}

void GradientSync::backward(const at::Tensor& loss, std::int64_t weight) {
  if (current_ < 0)
    throw ConfigError(
        "backward() was called without a micro-batch, or twice for one. Call it once for each "
        "micro-batch.");
  if (!loss.defined() || loss.numel() != 1)
    throw ConfigError("the loss must be one number, the mean over the micro-batch.");
  if (weight <= 0)
    throw ConfigError(
        cat("the weight of a micro-batch is its number of samples or tokens, not ", weight, "."));
  const MicroBatchResult result{
      .micro_batch = current_, .weight = weight, .loss = loss.detach().item<double>()};
  const bool counts = schedule_.leaves()[leaf_].block != LeafSchedule::Leaf::kNowhere;
  if (counts) summary_.add(result);
  collecting_ = true;
  try {
    if (loss.requires_grad()) (loss * static_cast<double>(weight)).backward();
  } catch (...) {
    collecting_ = false;
    throw;
  }
  collecting_ = false;
  buffers_.take(weight, done_ == 0, folder_, summary_);
  if (check_) hash_.add(layout_.size() + static_cast<std::size_t>(current_), std::as_bytes(std::span(&result, 1)));
  if (last_of_leaf()) {
    folder_.end_leaf([this](std::size_t entry) { exchange_->ready(entry); });
    if (check_) {
      check_->bits = hash_.value();
      summary_.add(*check_);
      check_.reset();
    }
    ++leaf_;
  }
  ++done_;
  current_ = -1;
}

void GradientSync::on_gradient(std::size_t parameter, const at::Tensor& tensor) {
  if (!collecting_) return;  // A backward of the user's own.
  at::Tensor& slot = at::Tensor(tensor).mutable_grad();
  at::Tensor gradient = std::move(slot);
  slot.reset();
  std::size_t accumulator = parameter;
  const auto entry = list_ != nullptr ? list_->differentiating() : std::nullopt;
  for (std::size_t i = 0; entry && i < tensors_.tied.size(); ++i) {
    const TiedUse& use = tensors_.tied[i];
    if (use.parameter == parameter && use.entry == *entry) accumulator = tensors_.first_tied() + i;
  }
  folder_.add(accumulator, std::move(gradient));
  summary_.set_present(accumulator);
  // A list that a user's loop calls twice for a micro-batch has the gradient of an entry twice.
  if (!entry && last_of_leaf() && folder_.finish(accumulator)) exchange_->ready(accumulator);
}

std::vector<AddedTensor> GradientSync::tied_uses() const {
  std::vector<AddedTensor> all;
  for (const TiedUse& use : tensors_.tied)
    all.push_back({.to = use.parameter, .entry = tensors_.first_tied() + all.size()});
  return all;
}

bool GradientSync::present(std::size_t parameter) const {
  if (summary_.present(parameter)) return true;
  for (std::size_t i = 0; i < tensors_.tied.size(); ++i) {
    if (tensors_.tied[i].parameter == parameter && summary_.present(tensors_.first_tied() + i))
      return true;
  }
  return false;
}

GradientSync::Outcome GradientSync::finish(const Wishes& mine, FaultPlan& faults) {
  gather(mine, faults);
  return reduce(faults);
}

void GradientSync::gather(const Wishes& mine, FaultPlan& faults) {
  if (done_ != mine_.size()) {
    throw ConfigError(cat("step ", step_, " was finished after ", done_, " of the ", mine_.size(),
                          " micro-batches of this rank. Call backward() once for each of them."));
  }
  YOKE_ENSURE(!block_, "a block is neither kept nor dropped");
  summary_.set(mine);
  if (faults.reach("before_reduce", step_) && own_leaves_ > 0) {
    // The highest bit of a mantissa, in the tensor nearest to the loss: it cannot be lost in
    // rounding.
    const auto& last = layout_[tensors_.trainable.size() - 1];
    exchange_->block(0)[last.offset + size_of(last.dtype) - 2] ^= std::byte{0x40};
  }
  exchange_->backward_done();
  summary_.gather(communicator_, micro_batches_, options_.leaf);
}

GradientSync::Outcome GradientSync::reduce(FaultPlan& faults) {
  outcome_ = {};
  std::vector<double> losses;
  for (const auto& result : summary_.results()) {
    outcome_.weight += result.weight;
    losses.push_back(result.loss * static_cast<double>(result.weight));
  }
  outcome_.loss = optim::tree_sum(losses) / static_cast<double>(outcome_.weight);
  outcome_.wishes = summary_.wishes();
  outcome_.results = &summary_.results();
  gathered_ = true;
  if (open_) exchange_->settle(summary_.held());

  faults.reach("in_reduce", step_);
  exchange_->reduce(static_cast<double>(outcome_.weight));
  if (exchange_->shared()) communicator_.barrier();
  complete();
  faults.reach("after_reduce", step_);
  return outcome_;
}

GradientSync::Outcome GradientSync::complete() {
  YOKE_ENSURE(gathered_, "step ", step_, " was broken off before all had given their gradients");
  if (completed_) return outcome_;
  outcome_.norm = global_norm(layout_, tensors_.trainable.size(), exchange_->squares());
  if (!std::isfinite(outcome_.norm)) {
    buffers_.reset();
    throw DataError(cat("step ", step_, ": the gradient is not finite (loss ", outcome_.loss,
                        "). The state of the step is unchanged. Lower the learning rate, clip "
                        "(train.clip_norm), or look "
                        "at the data of this step in the ledger."));
  }
  buffers_.advance(exchange_->reduced(), layout_, summary_);
  completed_ = true;
  return outcome_;
}

}  // namespace yoke::sync
