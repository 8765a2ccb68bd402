#include "yoke/optim/sgd.h"

#include "yoke/base/error.h"
#include "yoke/optim/vector_clones.h"

namespace yoke::optim {
namespace {

/// One call's numbers, in the type of the elements.
template <typename T>
struct Rates {
  T lr, momentum, kept_gradient, weight_decay, scale;
  bool decays, first, nesterov;
};

template <bool kDecays, typename T>
YOKE_LOOP T gradient_of(T gradient, T parameter, const Rates<T>& r) {
  T scaled = gradient * r.scale;
  // Not 0 * p where there is no decay: it would turn an infinite parameter into NaN, and -0 into
  // +0.
  return kDecays ? scaled + parameter * r.weight_decay : scaled;
}

template <bool kDecays, typename T>
YOKE_LOOP void plain_loop(T* __restrict p, const T* __restrict g, std::size_t n, Rates<T> r) {
  for (std::size_t i = 0; i < n; ++i) {
    p[i] -= r.lr * gradient_of<kDecays>(g[i], p[i], r);
  }
}

template <bool kDecays, bool kFirst, bool kNesterov, typename T>
YOKE_LOOP void momentum_loop(T* __restrict p, const T* __restrict g, T* __restrict b, std::size_t n,
                             Rates<T> r) {
  for (std::size_t i = 0; i < n; ++i) {
    T gradient = gradient_of<kDecays>(g[i], p[i], r);
    T moved = kFirst ? gradient : r.momentum * b[i] + r.kept_gradient * gradient;
    b[i] = moved;
    p[i] -= r.lr * (kNesterov ? gradient + r.momentum * moved : moved);
  }
}

template <bool kDecays, bool kFirst, typename T>
YOKE_LOOP void choose_nesterov(T* p, const T* g, T* b, std::size_t n, const Rates<T>& r) {
  r.nesterov ? momentum_loop<kDecays, kFirst, true>(p, g, b, n, r)
             : momentum_loop<kDecays, kFirst, false>(p, g, b, n, r);
}

template <bool kDecays, typename T>
YOKE_LOOP void choose_first(T* p, const T* g, T* b, std::size_t n, const Rates<T>& r) {
  r.first ? choose_nesterov<kDecays, true>(p, g, b, n, r)
          : choose_nesterov<kDecays, false>(p, g, b, n, r);
}

template <typename T>
YOKE_LOOP void update_all(T* p, const T* g, T* b, std::size_t n, const Rates<T>& r) {
  if (b == nullptr) {
    r.decays ? plain_loop<true>(p, g, n, r) : plain_loop<false>(p, g, n, r);
  } else {
    r.decays ? choose_first<true>(p, g, b, n, r) : choose_first<false>(p, g, b, n, r);
  }
}

YOKE_VECTOR_CLONES void sgd_float(float* p, const float* g, float* b, std::size_t n,
                                  const Rates<float>& r) {
  update_all(p, g, b, n, r);
}

YOKE_VECTOR_CLONES void sgd_double(double* p, const double* g, double* b, std::size_t n,
                                   const Rates<double>& r) {
  update_all(p, g, b, n, r);
}

void update_elements(float* p, const float* g, float* b, std::size_t n, const Rates<float>& r) {
  sgd_float(p, g, b, n, r);
}

void update_elements(double* p, const double* g, double* b, std::size_t n, const Rates<double>& r) {
  sgd_double(p, g, b, n, r);
}

}  // namespace

Sgd::Sgd(const OptimizerOptions& options) : options_(options) {
  if (!(options.momentum >= 0.0)) {
    throw ConfigError(cat("optimizer.momentum must be 0 or more, and is ", options.momentum, "."));
  }
  if (!(options.dampening >= 0.0 && options.dampening <= 1.0)) {
    throw ConfigError(
        cat("optimizer.dampening must lie between 0 and 1, and is ", options.dampening, "."));
  }
  if (options.nesterov && (options.momentum == 0.0 || options.dampening != 0.0)) {
    throw ConfigError(cat("optimizer.nesterov needs momentum above 0 and dampening 0; momentum is ",
                          options.momentum, ", dampening ", options.dampening,
                          ". Set optimizer.momentum, for example 0.9."));
  }
}

std::vector<std::string> Sgd::slots() const {
  if (options_.momentum == 0.0) return {};
  return {"momentum_buffer"};
}

template <typename T>
void Sgd::step_as(std::span<T> parameters, std::span<const T> gradients, std::span<T* const> slots,
                  double lr, std::int64_t update, double scale) const {
  YOKE_ENSURE_EQ(parameters.size(), gradients.size(),
                 "One gradient element belongs to each parameter element.");
  YOKE_ENSURE_EQ(slots.size(), options_.momentum == 0.0 ? 0u : 1u,
                 "sgd has one slot with momentum, else none.");
  YOKE_ENSURE(update >= 1, "update ", update, "; a tensor's updates count from 1.");
  Rates<T> rates{.lr = static_cast<T>(lr),
                 .momentum = static_cast<T>(options_.momentum),
                 .kept_gradient = static_cast<T>(1.0 - options_.dampening),
                 .weight_decay = static_cast<T>(options_.weight_decay),
                 .scale = static_cast<T>(scale),
                 .decays = options_.weight_decay != 0.0,
                 .first = update == 1,
                 .nesterov = options_.nesterov};
  update_elements(parameters.data(), gradients.data(), slots.empty() ? nullptr : slots[0],
                  parameters.size(), rates);
}

void Sgd::step(std::span<float> parameters, std::span<const float> gradients,
               std::span<float* const> slots, double lr, std::int64_t update, double scale) const {
  step_as(parameters, gradients, slots, lr, update, scale);
}

void Sgd::step(std::span<double> parameters, std::span<const double> gradients,
               std::span<double* const> slots, double lr, std::int64_t update, double scale) const {
  step_as(parameters, gradients, slots, lr, update, scale);
}

}  // namespace yoke::optim
