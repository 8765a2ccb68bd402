#include "yoke/model/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models.h"
#include "yoke/base/error.h"
#include "yoke/model/linear.h"

namespace yoke::model {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const data::Shape kFlat{.input = {64}, .classes = 10};
const data::Shape kPicture{.input = {1, 28, 28}, .classes = 10};
const data::Shape kText{.input = {16}, .classes = 30, .tokens = true};

std::string refused(const ModelOptions& options, const data::Shape& shape) {
  try {
    Registry::with_built_in().make(options, shape, 1);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "made";
}

TEST(Registry, RefusesWhatDoesNotFitWithAHint) {
  EXPECT_THAT(refused({.name = "gtp"}, kText), HasSubstr("There are cnn, gpt, mlp"));
  EXPECT_THAT(refused({.name = "mlpp"}, kFlat), HasSubstr("Did you mean \"mlp\"?"));
  EXPECT_THAT(refused({.name = "cnn"}, kFlat),
              AllOf(HasSubstr("is 64"), HasSubstr("model.name = \"mlp\"")));
  EXPECT_THAT(refused({.name = "cnn"}, {.input = {1, 3, 9}, .classes = 2}), HasSubstr("is 1x3x9"));
  EXPECT_THAT(refused({.name = "cnn", .channels = 0}, kPicture), HasSubstr("model.channels"));
  EXPECT_THAT(refused({.name = "cnn"}, kText), HasSubstr("model.name = \"gpt\""));
  EXPECT_THAT(refused({.name = "mlp"}, kText), HasSubstr("model.name = \"gpt\""));
  EXPECT_THAT(refused({.name = "mlp", .hidden = 0}, kFlat), HasSubstr("model.hidden"));
  EXPECT_THAT(refused({.name = "mlp", .depth = -1}, kFlat), HasSubstr("model.depth"));
  EXPECT_THAT(refused({.name = "gpt"}, kFlat), HasSubstr("data.kind = \"text\""));
  EXPECT_THAT(refused({.name = "gpt", .width = 100, .heads = 3}, kText),
              HasSubstr("model.heads (3) must divide model.width (100)"));
  EXPECT_THAT(refused({.name = "gpt", .heads = 0}, kText), HasSubstr("model.heads"));
  EXPECT_THAT(refused({.name = "gpt", .depth = 0}, kText), HasSubstr("model.depth"));
  EXPECT_THAT(refused({.name = "mlp", .dtype = "float16"}, kFlat), HasSubstr("model.dtype"));
  EXPECT_THAT(refused({.name = "mlp", .dropout = 1.0}, kFlat), HasSubstr("model.dropout"));
}

TEST(Registry, TakesAModelOfTheProgram) {
  auto registry = Registry::with_built_in();
  registry.add("mine",
               [](const ModelOptions& options, const data::Shape& shape, std::uint64_t seed) {
                 auto model = std::make_shared<LayerList>();
                 model->add("only", std::make_shared<Linear>(shape.input[0], options.hidden));
                 model->initialize(seed);
                 return model;
               });
  EXPECT_THAT(registry.names(), testing::ElementsAre("cnn", "gpt", "mine", "mlp"));
  auto model = registry.make({.name = "mine", .dtype = "float64", .hidden = 7}, kFlat, 1);
  auto output = model->forward(torch::zeros({2, 64}), {});
  EXPECT_EQ(output.size(1), 7);
  EXPECT_EQ(output.scalar_type(), torch::kDouble) << "dtype holds for a program's own models too";
  EXPECT_THROW(registry.add("mine", nullptr), ConfigError);
  registry.add("nothing",
               [](const ModelOptions&, const data::Shape&, std::uint64_t) { return nullptr; });
  EXPECT_THROW(registry.make({.name = "nothing"}, kFlat, 1), ConfigError);
}

}  // namespace
}  // namespace yoke::model
