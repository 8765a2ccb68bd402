#include "yoke/optim/sgd.h"

#include "yoke/base/error.h"
#include "yoke/base/vector_clones.h"

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

/// Where the old values lie and the new ones go, which may be the same places; `b` is null without
/// momentum.
template <typename T>
struct Places {
  const T *p, *g, *b;
  T *new_p, *new_b;
};

template <bool kDecays, typename T>
YOKE_LOOP void plain_loop(const Places<T>& at, std::size_t n, Rates<T> r) {
  const T *p = at.p, *g = at.g;
  T* new_p = at.new_p;
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    new_p[i] = p[i] - r.lr * gradient_of<kDecays>(g[i], p[i], r);
  }
}

template <bool kDecays, bool kFirst, bool kNesterov, typename T>
YOKE_LOOP void momentum_loop(const Places<T>& at, std::size_t n, Rates<T> r) {
  const T *p = at.p, *g = at.g, *b = at.b;
  T *new_p = at.new_p, *new_b = at.new_b;
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    T gradient = gradient_of<kDecays>(g[i], p[i], r);
    T moved = kFirst ? gradient : r.momentum * b[i] + r.kept_gradient * gradient;
    new_b[i] = moved;
    new_p[i] = p[i] - r.lr * (kNesterov ? gradient + r.momentum * moved : moved);
  }
}

template <bool kDecays, bool kFirst, typename T>
YOKE_LOOP void choose_nesterov(const Places<T>& at, std::size_t n, const Rates<T>& r) {
  r.nesterov ? momentum_loop<kDecays, kFirst, true>(at, n, r)
             : momentum_loop<kDecays, kFirst, false>(at, n, r);
}

template <bool kDecays, typename T>
YOKE_LOOP void choose_first(const Places<T>& at, std::size_t n, const Rates<T>& r) {
  r.first ? choose_nesterov<kDecays, true>(at, n, r) : choose_nesterov<kDecays, false>(at, n, r);
}

template <typename T>
YOKE_LOOP void update_all(const Places<T>& at, std::size_t n, const Rates<T>& r) {
  if (at.new_b == nullptr) {
    r.decays ? plain_loop<true>(at, n, r) : plain_loop<false>(at, n, r);
  } else {
    r.decays ? choose_first<true>(at, n, r) : choose_first<false>(at, n, r);
  }
}

YOKE_VECTOR_CLONES void sgd_float(const Places<float>& at, std::size_t n, const Rates<float>& r) {
  update_all(at, n, r);
}

YOKE_VECTOR_CLONES void sgd_double(const Places<double>& at, std::size_t n,
                                   const Rates<double>& r) {
  update_all(at, n, r);
}

void update_elements(const Places<float>& at, std::size_t n, const Rates<float>& r) {
  sgd_float(at, n, r);
}

void update_elements(const Places<double>& at, std::size_t n, const Rates<double>& r) {
  sgd_double(at, n, r);
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
void Sgd::step_as(const Elements<T>& elements, double lr, std::int64_t update, double scale) const {
  YOKE_ENSURE(update >= 1, "update ", update, "; a tensor's updates count from 1.");
  Rates<T> rates{.lr = static_cast<T>(lr),
                 .momentum = static_cast<T>(options_.momentum),
                 .kept_gradient = static_cast<T>(1.0 - options_.dampening),
                 .weight_decay = static_cast<T>(options_.weight_decay),
                 .scale = static_cast<T>(scale),
                 .decays = options_.weight_decay != 0.0,
                 .first = update == 1,
                 .nesterov = options_.nesterov};
  const bool has_slot = options_.momentum != 0.0;
  update_elements({.p = elements.parameters,
                   .g = elements.gradients,
                   .b = elements.slots[0],
                   .new_p = elements.new_parameters,
                   .new_b = has_slot ? elements.new_slots[0] : nullptr},
                  elements.count, rates);
}

void Sgd::step(const Elements<float>& elements, double lr, std::int64_t update,
               double scale) const {
  step_as(elements, lr, update, scale);
}

void Sgd::step(const Elements<double>& elements, double lr, std::int64_t update,
               double scale) const {
  step_as(elements, lr, update, scale);
}

}  // namespace yoke::optim
