#include "yoke/optim/adam.h"

#include <algorithm>
#include <cmath>

#include "yoke/base/error.h"
#include "yoke/optim/vector_clones.h"

namespace yoke::optim {
namespace {

enum class Decay { kNone, kGradient, kDecoupled };

/// One call's numbers, in the type of the elements.
template <typename T>
struct Rates {
  T step_size, kept1, new1, kept2, new2, correction2, epsilon;
  T decay;  ///< kGradient: the weight decay; kDecoupled: what is left of a parameter
  T scale;
  Decay kind;
};

template <Decay kDecay, typename T>
YOKE_LOOP void adam_loop(T* __restrict p, const T* __restrict g, T* __restrict m, T* __restrict v,
                         std::size_t n, Rates<T> r) {
  for (std::size_t i = 0; i < n; ++i) {
    T parameter = p[i];
    T gradient = g[i] * r.scale;
    if constexpr (kDecay == Decay::kGradient) gradient += parameter * r.decay;
    if constexpr (kDecay == Decay::kDecoupled) parameter *= r.decay;
    T first = m[i] * r.kept1 + gradient * r.new1;
    T second = v[i] * r.kept2 + gradient * gradient * r.new2;
    m[i] = first;
    v[i] = second;
    p[i] = parameter - r.step_size * first / (std::sqrt(second) * r.correction2 + r.epsilon);
  }
}

template <typename T>
YOKE_LOOP void update_all(T* p, const T* g, T* m, T* v, std::size_t n, const Rates<T>& r) {
  switch (r.kind) {
    case Decay::kNone:
      return adam_loop<Decay::kNone>(p, g, m, v, n, r);
    case Decay::kGradient:
      return adam_loop<Decay::kGradient>(p, g, m, v, n, r);
    case Decay::kDecoupled:
      return adam_loop<Decay::kDecoupled>(p, g, m, v, n, r);
  }
}

YOKE_VECTOR_CLONES void adam_float(float* p, const float* g, float* m, float* v, std::size_t n,
                                   const Rates<float>& r) {
  update_all(p, g, m, v, n, r);
}

YOKE_VECTOR_CLONES void adam_double(double* p, const double* g, double* m, double* v, std::size_t n,
                                    const Rates<double>& r) {
  update_all(p, g, m, v, n, r);
}

void update_elements(float* p, const float* g, float* m, float* v, std::size_t n,
                     const Rates<float>& r) {
  adam_float(p, g, m, v, n, r);
}

void update_elements(double* p, const double* g, double* m, double* v, std::size_t n,
                     const Rates<double>& r) {
  adam_double(p, g, m, v, n, r);
}

void check_beta(const char* key, double beta) {
  if (!(beta >= 0.0 && beta < 1.0)) {
    throw ConfigError(
        cat("optimizer.", key, " must be at least 0 and below 1, and is ", beta, "."));
  }
}

}  // namespace

Adam::Adam(const OptimizerOptions& options, bool decoupled)
    : options_(options), decoupled_(decoupled) {
  check_beta("beta1", options.beta1);
  check_beta("beta2", options.beta2);
  if (!(options.epsilon >= 0.0)) {
    throw ConfigError(cat("optimizer.epsilon must be 0 or more, and is ", options.epsilon, "."));
  }
}

std::vector<std::string> Adam::slots() const {
  return {"exp_avg", "exp_avg_sq"};
}

template <typename T>
void Adam::step_as(std::span<T> parameters, std::span<const T> gradients, std::span<T* const> slots,
                   double lr, std::int64_t update, double scale) const {
  YOKE_ENSURE_EQ(parameters.size(), gradients.size(),
                 "One gradient element belongs to each parameter element.");
  YOKE_ENSURE_EQ(slots.size(), 2u, "Adam has two slots.");
  YOKE_ENSURE(update >= 1, "update ", update, "; a tensor's updates count from 1.");
  auto t = static_cast<double>(update);
  double decay = options_.weight_decay;
  Rates<T> rates{
      .step_size = static_cast<T>(lr / (1.0 - std::pow(options_.beta1, t))),
      .kept1 = static_cast<T>(options_.beta1),
      .new1 = static_cast<T>(1.0 - options_.beta1),
      .kept2 = static_cast<T>(options_.beta2),
      .new2 = static_cast<T>(1.0 - options_.beta2),
      .correction2 = static_cast<T>(1.0 / std::sqrt(1.0 - std::pow(options_.beta2, t))),
      .epsilon = static_cast<T>(options_.epsilon),
      .decay = static_cast<T>(decoupled_ ? 1.0 - lr * decay : decay),
      .scale = static_cast<T>(scale),
      .kind = decay == 0.0 ? Decay::kNone : (decoupled_ ? Decay::kDecoupled : Decay::kGradient)};
  if (update == 1) {
    std::fill_n(slots[0], parameters.size(), T{0});
    std::fill_n(slots[1], parameters.size(), T{0});
  }
  update_elements(parameters.data(), gradients.data(), slots[0], slots[1], parameters.size(),
                  rates);
}

void Adam::step(std::span<float> parameters, std::span<const float> gradients,
                std::span<float* const> slots, double lr, std::int64_t update, double scale) const {
  step_as(parameters, gradients, slots, lr, update, scale);
}

void Adam::step(std::span<double> parameters, std::span<const double> gradients,
                std::span<double* const> slots, double lr, std::int64_t update,
                double scale) const {
  step_as(parameters, gradients, slots, lr, update, scale);
}

}  // namespace yoke::optim
