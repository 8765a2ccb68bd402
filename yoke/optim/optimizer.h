#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace yoke::optim {

/// The options of all optimizers; each reads those that it knows. Defaults are torch::optim's.
struct OptimizerOptions {
  std::string name = "sgd";  ///< "sgd", "adam", "adamw"
  double lr = 0.01;
  double momentum = 0.0;
  double dampening = 0.0;
  bool nesterov = false;
  double weight_decay = 0.0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};

/// Elements of one tensor to update. New values go to `new_parameters` and `new_slots`, which are
/// either the old places or overlap none of the others.
template <typename T>
struct Elements {
  static constexpr std::size_t kMostSlots = 2;
  std::size_t count = 0;
  const T* gradients = nullptr;
  const T* parameters = nullptr;
  std::array<const T*, kMostSlots> slots{};  ///< as many as slots() has names
  T* new_parameters = nullptr;
  std::array<T*, kMostSlots> new_slots{};
};

/// An optimizer on flat memory: element by element, without state of its own. The state lies in
/// slots beside the parameters, one value an element, and in a count of updates a tensor. So a
/// tensor may be updated in pieces, by several processes, with the same bits, as long as pieces are
/// cut at multiples of 1,024 elements. Compiled with -ffp-contract=off. Equal to torch::optim to
/// rounding (1e-6 relative in float32, 1e-14 in float64, one step).
class Optimizer {
 public:
  /// Throws ConfigError for an unknown name (did you mean) or options that cannot be right
  /// (Nesterov without momentum, negative rates, betas outside [0, 1)).
  static std::unique_ptr<Optimizer> make(const OptimizerOptions& options);
  virtual ~Optimizer() = default;

  /// Names of the slots: {"momentum_buffer"}, {"exp_avg", "exp_avg_sq"}, or none.
  virtual std::vector<std::string> slots() const = 0;

  /// One update. `update` counts this tensor's updates, from 1 (Adam's bias correction, momentum's
  /// first step). `scale` multiplies each gradient first (clipping).
  virtual void step(const Elements<float>& elements, double lr, std::int64_t update,
                    double scale) const = 0;
  virtual void step(const Elements<double>& elements, double lr, std::int64_t update,
                    double scale) const = 0;

  /// The same in place. `slots[i]` points to slot i of the first of these elements.
  template <typename T>
  void step_in_place(std::span<T> parameters, std::span<const T> gradients,
                     std::span<T* const> slots, double lr, std::int64_t update, double scale) const;
};

}  // namespace yoke::optim
