#include "yoke/train/evaluator.h"

#include <torch/torch.h>

#include <cmath>
#include <numeric>

#include "yoke/base/error.h"
#include "yoke/model/registry.h"
#include "yoke/optim/norm.h"
#include "yoke/train/model_input.h"

namespace yoke::train {

Evaluator::Evaluator(std::shared_ptr<const data::Dataset> data, std::int64_t micro_batch)
    : data_(std::move(data)),
      micro_batch_(micro_batch),
      count_((data_->size() + micro_batch - 1) / micro_batch) {}

Evaluator::Part Evaluator::evaluate(model::LayerList& model, std::int64_t micro_batch) const {
  const std::int64_t first = micro_batch * micro_batch_;
  std::vector<std::int64_t> indices(
      static_cast<std::size_t>(std::min(micro_batch_, data_->size() - first)));
  std::iota(indices.begin(), indices.end(), first);
  const data::Batch batch = data_->get(indices);
  const torch::Tensor output = model.forward(model_input(model, batch.input), {.training = false});
  const double loss = model::cross_entropy(output, batch.target).item<double>();
  return {loss * static_cast<double>(batch.weight), batch.weight,
          model::correct(output, batch.target)};
}

std::map<std::string, double> Evaluator::run(model::LayerList& model,
                                             comm::Communicator* communicator) const {
  torch::NoGradGuard no_grad;
  const int ranks = communicator ? communicator->size() : 1;
  const auto plan = comm::BlockPlan::even(count_, ranks);
  std::size_t most = 0;
  for (int rank = 0; rank < ranks; ++rank)
    most = std::max(most, static_cast<std::size_t>(plan.range_of(rank).second));

  const auto [first, count] = plan.range_of(communicator ? communicator->rank() : 0);
  std::vector<Part> mine(most);
  model.eval();
  for (std::int64_t i = 0; i < count; ++i)
    mine[static_cast<std::size_t>(i)] = evaluate(model, first + i);
  model.train();
  std::vector<Part> all(most * static_cast<std::size_t>(ranks));
  if (communicator) {
    communicator->all_gather(std::as_bytes(std::span(mine)),
                             std::as_writable_bytes(std::span(all)));
  } else {
    all = mine;
  }

  std::vector<double> losses;
  std::int64_t weight = 0;
  std::int64_t correct = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::int64_t i = 0; i < plan.range_of(rank).second; ++i) {
      const Part& part = all[static_cast<std::size_t>(rank) * most + static_cast<std::size_t>(i)];
      losses.push_back(part.loss);
      weight += part.weight;
      correct += part.correct;
    }
  }
  std::map<std::string, double> metrics;
  metrics["loss"] = optim::tree_sum(losses) / static_cast<double>(weight);
  metrics["accuracy"] = static_cast<double>(correct) / static_cast<double>(weight);
  if (data_->shape().tokens) metrics["perplexity"] = std::exp(metrics["loss"]);
  return metrics;
}

}  // namespace yoke::train
