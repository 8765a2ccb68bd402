#pragma once

#include "yoke/optim/optimizer.h"

namespace yoke::optim {

/// Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019), as torch::optim's, at the
/// t-th update:
///   g = scale * gradient, for Adam + weight_decay * p; for AdamW instead p = p * (1 - lr *
///   weight_decay) m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g * g p = p - lr
///   / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
/// The first update takes m and v as 0, whatever the slots hold.
class Adam final : public Optimizer {
 public:
  /// `decoupled`: AdamW. Throws ConfigError for options that cannot be right.
  Adam(const OptimizerOptions& options, bool decoupled);

  std::vector<std::string> slots() const override;
  void step(const Elements<float>& elements, double lr, std::int64_t update,
            double scale) const override;
  void step(const Elements<double>& elements, double lr, std::int64_t update,
            double scale) const override;

 private:
  template <typename T>
  void step_as(const Elements<T>& elements, double lr, std::int64_t update, double scale) const;

  OptimizerOptions options_;
  bool decoupled_;
};

}  // namespace yoke::optim
