#pragma once

#include "yoke/optim/optimizer.h"

namespace yoke::optim {

/// Stochastic gradient descent with momentum, as torch::optim::SGD:
///   g = scale * gradient + weight_decay * p
///   b = g at the first update, then momentum * b + (1 - dampening) * g
///   p = p - lr * (nesterov ? g + momentum * b : b)
/// and p - lr * g without momentum, which needs no slot.
class Sgd final : public Optimizer {
 public:
  /// Throws ConfigError for options that cannot be right.
  explicit Sgd(const OptimizerOptions& options);

  std::vector<std::string> slots() const override;
  void step(const Elements<float>& elements, double lr, std::int64_t update,
            double scale) const override;
  void step(const Elements<double>& elements, double lr, std::int64_t update,
            double scale) const override;

 private:
  template <typename T>
  void step_as(const Elements<T>& elements, double lr, std::int64_t update, double scale) const;

  OptimizerOptions options_;
};

}  // namespace yoke::optim
