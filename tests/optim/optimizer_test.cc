#include "yoke/optim/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/optim/norm.h"

namespace yoke::optim {
namespace {

/// One tensor with its slots, and the way it goes through a few updates.
template <typename T>
struct Tensor {
  std::vector<T> values;
  std::vector<std::vector<T>> slots;

  Tensor(std::size_t count, std::size_t slot_count)
      : values(count), slots(slot_count, std::vector<T>(count)) {
    std::mt19937_64 generator(1);
    std::normal_distribution<double> normal;
    for (T& value : values) value = static_cast<T>(normal(generator));
  }

  void update(const Optimizer& optimizer, std::span<const T> gradient, std::size_t first,
              std::size_t count, std::int64_t update) {
    std::vector<T*> places;
    for (auto& slot : slots) places.push_back(slot.data() + first);
    optimizer.step_in_place(std::span<T>(values).subspan(first, count),
                            gradient.subspan(first, count), std::span<T* const>(places), 0.01,
                            update, 0.75);
  }

  bool operator==(const Tensor&) const = default;
};

template <typename T>
std::vector<T> gradient_of_update(std::size_t count, std::int64_t update) {
  std::mt19937_64 generator(static_cast<unsigned>(100 + update));
  std::normal_distribution<double> normal(0.0, 0.1);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(normal(generator));
  return values;
}

std::vector<OptimizerOptions> all_kinds() {
  return {{.name = "sgd"},
          {.name = "sgd", .weight_decay = 0.1},
          {.name = "sgd", .momentum = 0.9, .dampening = 0.3},
          {.name = "sgd", .momentum = 0.9, .nesterov = true, .weight_decay = 0.1},
          {.name = "adam"},
          {.name = "adam", .weight_decay = 0.1},
          {.name = "adamw", .weight_decay = 0.1}};
}

template <typename T>
class OptimizerOf : public testing::Test {};
using ElementTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(OptimizerOf, ElementTypes);

TYPED_TEST(OptimizerOf, CutsAtBlocksChangeNoBit) {
  constexpr std::size_t kCount = 100'003;
  for (const auto& options : all_kinds()) {
    auto optimizer = Optimizer::make(options);
    Tensor<TypeParam> whole(kCount, optimizer->slots().size());
    auto start = whole;
    auto cut = whole;
    for (int update = 1; update <= 3; ++update) {
      auto gradient = gradient_of_update<TypeParam>(kCount, update);
      whole.update(*optimizer, gradient, 0, kCount, update);
      std::size_t step = kBlockElements * static_cast<std::size_t>(update);
      for (std::size_t first = 0; first < kCount; first += step) {
        cut.update(*optimizer, gradient, first, std::min(step, kCount - first), update);
      }
    }
    EXPECT_EQ(whole, cut) << options.name;
    EXPECT_NE(whole, start) << options.name;
  }
}

TYPED_TEST(OptimizerOf, TheFirstUpdateDoesNotReadTheSlots) {
  for (const auto& options : all_kinds()) {
    auto optimizer = Optimizer::make(options);
    Tensor<TypeParam> clean(500, optimizer->slots().size());
    auto dirty = clean;
    for (auto& slot : dirty.slots)
      slot.assign(slot.size(), std::numeric_limits<TypeParam>::quiet_NaN());
    auto gradient = gradient_of_update<TypeParam>(500, 1);
    clean.update(*optimizer, gradient, 0, 500, 1);
    dirty.update(*optimizer, gradient, 0, 500, 1);
    EXPECT_EQ(clean, dirty) << options.name;
  }
}

TYPED_TEST(OptimizerOf, NewPlacesGetTheBitsAndOldOnesAreLeftAlone) {
  for (const auto& options : all_kinds()) {
    auto optimizer = Optimizer::make(options);
    Tensor<TypeParam> in_place(2500, optimizer->slots().size());
    for (int update = 1; update <= 2; ++update) {
      const auto gradient = gradient_of_update<TypeParam>(2500, update);
      const auto old = in_place;
      auto fresh = in_place;
      for (auto& value : fresh.values) value = std::numeric_limits<TypeParam>::quiet_NaN();
      Elements<TypeParam> elements{.count = 2500,
                                   .gradients = gradient.data(),
                                   .parameters = in_place.values.data(),
                                   .new_parameters = fresh.values.data()};
      for (std::size_t s = 0; s < fresh.slots.size(); ++s) {
        elements.slots[s] = in_place.slots[s].data();
        elements.new_slots[s] = fresh.slots[s].data();
      }
      optimizer->step(elements, 0.01, update, 0.75);
      EXPECT_EQ(in_place, old) << options.name;
      in_place.update(*optimizer, gradient, 0, 2500, update);
      EXPECT_EQ(fresh, in_place) << options.name;
    }
  }
}

TYPED_TEST(OptimizerOf, ScaleActsAsAScaledGradient) {
  for (const auto& options : all_kinds()) {
    auto optimizer = Optimizer::make(options);
    Tensor<TypeParam> scaled(2000, optimizer->slots().size());
    auto plain = scaled;
    auto gradient = gradient_of_update<TypeParam>(2000, 1);
    scaled.update(*optimizer, gradient, 0, 2000, 1);
    for (TypeParam& element : gradient) element *= static_cast<TypeParam>(0.75);
    std::vector<TypeParam*> places;
    for (auto& slot : plain.slots) places.push_back(slot.data());
    optimizer->step_in_place(std::span<TypeParam>(plain.values),
                             std::span<const TypeParam>(gradient),
                             std::span<TypeParam* const>(places), 0.01, 1, 1.0);
    EXPECT_EQ(scaled, plain) << options.name;
  }
}

TEST(Optimizer, NamesItsSlots) {
  EXPECT_THAT(Optimizer::make({})->slots(), testing::IsEmpty());
  EXPECT_THAT(Optimizer::make({.momentum = 0.9})->slots(), testing::ElementsAre("momentum_buffer"));
  for (const char* name : {"adam", "adamw"}) {
    EXPECT_THAT(Optimizer::make({.name = name})->slots(),
                testing::ElementsAre("exp_avg", "exp_avg_sq"));
  }
}

TEST(Optimizer, LeavesAnInfiniteParameterInfiniteWithoutWeightDecay) {
  std::vector<float> parameters{std::numeric_limits<float>::infinity(), -0.0f};
  std::vector<float> gradient{0.0f, 0.0f};
  Optimizer::make({})->step_in_place(std::span<float>(parameters), std::span<const float>(gradient),
                                     {}, 0.1, 1, 1.0);
  EXPECT_TRUE(std::isinf(parameters[0]));
  EXPECT_TRUE(std::signbit(parameters[1]));
}

TEST(Optimizer, RefusesWhatCannotBeRight) {
  auto refused = [](const OptimizerOptions& options) {
    try {
      Optimizer::make(options);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  using testing::HasSubstr;
  EXPECT_THAT(refused({.name = "sgdd"}), HasSubstr("Did you mean \"sgd\"?"));
  EXPECT_THAT(refused({.name = "rprop-of-riedmiller"}), HasSubstr("There are sgd, adam and adamw"));
  EXPECT_THAT(refused({.lr = -1}), HasSubstr("optimizer.lr"));
  EXPECT_THAT(refused({.lr = std::nan("")}), HasSubstr("optimizer.lr"));
  EXPECT_THAT(refused({.weight_decay = -1}), HasSubstr("optimizer.weight_decay"));
  EXPECT_THAT(refused({.momentum = -0.1}), HasSubstr("optimizer.momentum"));
  EXPECT_THAT(refused({.momentum = 0.9, .dampening = 2}), HasSubstr("optimizer.dampening"));
  EXPECT_THAT(refused({.nesterov = true}), HasSubstr("needs momentum above 0"));
  EXPECT_THAT(refused({.momentum = 0.9, .dampening = 0.1, .nesterov = true}),
              HasSubstr("dampening 0"));
  EXPECT_THAT(refused({.name = "adam", .beta1 = 1.0}), HasSubstr("optimizer.beta1"));
  EXPECT_THAT(refused({.name = "adamw", .beta2 = -0.1}), HasSubstr("optimizer.beta2"));
  EXPECT_THAT(refused({.name = "adamw", .epsilon = -1}), HasSubstr("optimizer.epsilon"));
}

TEST(Optimizer, RefusesOptionsThatItWouldIgnore) {
  EXPECT_THROW(Optimizer::make({.name = "adamw", .momentum = 0.9}), ConfigError);
  EXPECT_THROW(Optimizer::make({.name = "adam", .nesterov = true}), ConfigError);
  EXPECT_THROW(Optimizer::make({.name = "sgd", .beta1 = 0.8}), ConfigError);
}

}  // namespace
}  // namespace yoke::optim
