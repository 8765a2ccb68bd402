#pragma once

#include <map>
#include <string>

#include "yoke/comm/communicator.h"
#include "yoke/data/dataset.h"
#include "yoke/model/layer_list.h"

namespace yoke::train {

/// Loss and accuracy over a data set, its micro-batches dealt over the ranks and added in the
/// canonical tree, so that the figures are the same bits for any number of ranks.
class Evaluator {
 public:
  Evaluator(std::shared_ptr<const data::Dataset> data, std::int64_t micro_batch);

  /// Collective; `communicator` null: alone. "loss", "accuracy" (part of the samples or tokens that
  /// is predicted right), and for a text "perplexity". The model is in training mode again
  /// afterwards.
  std::map<std::string, double> run(model::LayerList& model,
                                    comm::Communicator* communicator) const;

 private:
  struct Part {
    double loss = 0;  ///< mean times weight
    std::int64_t weight = 0;
    std::int64_t correct = 0;
  };
  Part evaluate(model::LayerList& model, std::int64_t micro_batch) const;

  std::shared_ptr<const data::Dataset> data_;
  std::int64_t micro_batch_;
  std::int64_t count_;
};

}  // namespace yoke::train
