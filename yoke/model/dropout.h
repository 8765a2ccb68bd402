#pragma once

#include "yoke/model/layer_list.h"

namespace yoke::model {

/// Each element is 0 with probability p, else divided by 1 - p; element i of `input` draws the i-th
/// number of `key`, so the mask is the same on whatever rank, and no process state is touched.
torch::Tensor dropout(const torch::Tensor& input, double p, const RandomKey& key);

class Dropout final : public Layer {
 public:
  /// 0 <= p < 1.
  explicit Dropout(double p);
  torch::Tensor forward(const torch::Tensor& input, const StepContext& context) override;

 private:
  double p_;
};

}  // namespace yoke::model
