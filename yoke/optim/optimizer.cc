#include "yoke/optim/optimizer.h"

#include "yoke/base/config_tree.h"
#include "yoke/base/error.h"
#include "yoke/optim/adam.h"
#include "yoke/optim/sgd.h"

namespace yoke::optim {
namespace {

/// An option that the chosen optimizer does not read must keep its default: a key is never ignored.
template <typename T>
void refuse(const std::string& optimizer, const char* key, const T& value, const T& preset,
            const char* whose) {
  if (value == preset) return;
  throw ConfigError(cat("optimizer.", key, " is ", value, ", but ", optimizer,
                        " has no such option. Set it to ", preset,
                        ", or choose optimizer.name = \"", whose, "\"."));
}

void refuse_options_of_sgd(const OptimizerOptions& options) {
  const OptimizerOptions preset;
  refuse(options.name, "momentum", options.momentum, preset.momentum, "sgd");
  refuse(options.name, "dampening", options.dampening, preset.dampening, "sgd");
  refuse(options.name, "nesterov", options.nesterov, preset.nesterov, "sgd");
}

void refuse_options_of_adam(const OptimizerOptions& options) {
  const OptimizerOptions preset;
  refuse(options.name, "beta1", options.beta1, preset.beta1, "adamw");
  refuse(options.name, "beta2", options.beta2, preset.beta2, "adamw");
  refuse(options.name, "epsilon", options.epsilon, preset.epsilon, "adamw");
}

}  // namespace

std::unique_ptr<Optimizer> Optimizer::make(const OptimizerOptions& options) {
  if (!(options.lr >= 0.0)) {
    throw ConfigError(cat("optimizer.lr must be 0 or more, and is ", options.lr, "."));
  }
  if (!(options.weight_decay >= 0.0)) {
    throw ConfigError(
        cat("optimizer.weight_decay must be 0 or more, and is ", options.weight_decay, "."));
  }
  if (options.name == "sgd") {
    refuse_options_of_adam(options);
    return std::make_unique<Sgd>(options);
  }
  if (options.name == "adam" || options.name == "adamw") {
    refuse_options_of_sgd(options);
    return std::make_unique<Adam>(options, options.name == "adamw");
  }
  auto guess = did_you_mean(options.name, {"sgd", "adam", "adamw"});
  throw ConfigError(cat("no optimizer is called \"", options.name, "\". ",
                        guess ? cat("Did you mean \"", *guess, "\"? ") : std::string(),
                        "There are sgd, adam and adamw."));
}

template <typename T>
void Optimizer::step_in_place(std::span<T> parameters, std::span<const T> gradients,
                              std::span<T* const> slots, double lr, std::int64_t update,
                              double scale) const {
  YOKE_ENSURE_EQ(parameters.size(), gradients.size(),
                 "One gradient element belongs to each parameter element.");
  YOKE_ENSURE_EQ(slots.size(), this->slots().size(), "An optimizer has as many slots as names.");
  Elements<T> elements{.count = parameters.size(),
                       .gradients = gradients.data(),
                       .parameters = parameters.data(),
                       .new_parameters = parameters.data()};
  for (std::size_t i = 0; i < slots.size(); ++i)
    elements.slots[i] = elements.new_slots[i] = slots[i];
  step(elements, lr, update, scale);
}
template void Optimizer::step_in_place(std::span<float>, std::span<const float>,
                                       std::span<float* const>, double, std::int64_t, double) const;
template void Optimizer::step_in_place(std::span<double>, std::span<const double>,
                                       std::span<double* const>, double, std::int64_t,
                                       double) const;

}  // namespace yoke::optim
