#include "yoke/model/loss.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

namespace yoke::model {
namespace {

TEST(CrossEntropy, IsTheMeanOfMinusLogProbabilities) {
  auto output = torch::tensor({{1.0, 2.0, 3.0}, {0.5, 0.5, -1.0}}, torch::kDouble);
  auto target = torch::tensor({2, 0});
  auto log_of = [](double a, double b, double c) {
    return std::log(std::exp(a) + std::exp(b) + std::exp(c));
  };
  double expected = ((log_of(1, 2, 3) - 3) + (log_of(0.5, 0.5, -1) - 0.5)) / 2;
  EXPECT_NEAR(cross_entropy(output, target).item<double>(), expected, 1e-14);
}

TEST(CrossEntropy, OfATextIsTheMeanOverItsTokens) {
  torch::manual_seed(1);
  auto output = torch::randn({3, 5, 7}, torch::kDouble);
  auto target = torch::randint(7, {3, 5});
  double sum = 0;
  for (int sample = 0; sample < 3; ++sample)
    sum += cross_entropy(output[sample], target[sample]).item<double>();
  EXPECT_NEAR(cross_entropy(output, target).item<double>(), sum / 3, 1e-14);
}

TEST(Correct, CountsSamplesAndTokens) {
  auto output = torch::tensor({{0.1, 0.9, 0.0}, {0.8, 0.1, 0.1}, {0.2, 0.3, 0.5}});
  EXPECT_EQ(correct(output, torch::tensor({1, 0, 1})), 2);
  EXPECT_EQ(correct(output.unsqueeze(0), torch::tensor({{1, 0, 2}})), 3);
}

}  // namespace
}  // namespace yoke::model
