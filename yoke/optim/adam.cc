#include "yoke/optim/adam.h"

#include <algorithm>
#include <cmath>

#include "yoke/base/error.h"
#include "yoke/base/vector_clones.h"

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

/// Where the old values lie and the new ones go, which may be the same places.
template <typename T>
struct Places {
  const T *p, *g, *m, *v;
  T *new_p, *new_m, *new_v;
};

template <Decay kDecay, typename T>
YOKE_LOOP void adam_loop(const Places<T>& at, std::size_t n, Rates<T> r) {
  const T *p = at.p, *g = at.g, *m = at.m, *v = at.v;
  T *new_p = at.new_p, *new_m = at.new_m, *new_v = at.new_v;
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    T parameter = p[i];
    T gradient = g[i] * r.scale;
    if constexpr (kDecay == Decay::kGradient) gradient += parameter * r.decay;
    if constexpr (kDecay == Decay::kDecoupled) parameter *= r.decay;
    T first = m[i] * r.kept1 + gradient * r.new1;
    T second = v[i] * r.kept2 + gradient * gradient * r.new2;
    new_m[i] = first;
    new_v[i] = second;
    new_p[i] = parameter - r.step_size * first / (std::sqrt(second) * r.correction2 + r.epsilon);
  }
}

template <typename T>
YOKE_LOOP void update_all(const Places<T>& at, std::size_t n, const Rates<T>& r) {
  switch (r.kind) {
    case Decay::kNone:
      return adam_loop<Decay::kNone>(at, n, r);
    case Decay::kGradient:
      return adam_loop<Decay::kGradient>(at, n, r);
    case Decay::kDecoupled:
      return adam_loop<Decay::kDecoupled>(at, n, r);
  }
}

YOKE_VECTOR_CLONES void adam_float(const Places<float>& at, std::size_t n, const Rates<float>& r) {
  update_all(at, n, r);
}

YOKE_VECTOR_CLONES void adam_double(const Places<double>& at, std::size_t n,
                                    const Rates<double>& r) {
  update_all(at, n, r);
}

void update_elements(const Places<float>& at, std::size_t n, const Rates<float>& r) {
  adam_float(at, n, r);
}

void update_elements(const Places<double>& at, std::size_t n, const Rates<double>& r) {
  adam_double(at, n, r);
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
void Adam::step_as(const Elements<T>& elements, double lr, std::int64_t update,
                   double scale) const {
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
  Places<T> at{.p = elements.parameters,
               .g = elements.gradients,
               .m = elements.slots[0],
               .v = elements.slots[1],
               .new_p = elements.new_parameters,
               .new_m = elements.new_slots[0],
               .new_v = elements.new_slots[1]};
  if (update == 1) {
    at.m = std::fill_n(at.new_m, elements.count, T{0}) - elements.count;
    at.v = std::fill_n(at.new_v, elements.count, T{0}) - elements.count;
  }
  update_elements(at, elements.count, rates);
}

void Adam::step(const Elements<float>& elements, double lr, std::int64_t update,
                double scale) const {
  step_as(elements, lr, update, scale);
}

void Adam::step(const Elements<double>& elements, double lr, std::int64_t update,
                double scale) const {
  step_as(elements, lr, update, scale);
}

}  // namespace yoke::optim
