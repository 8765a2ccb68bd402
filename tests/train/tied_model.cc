#include "tests/train/tied_model.h"

#include <torch/torch.h>

#include "yoke/model/linear.h"

namespace yoke::test {
namespace {

using model::StepContext;

class Encode : public model::Layer {
 public:
  Encode(std::int64_t in, std::int64_t out)
      : weight_(register_parameter("weight", torch::empty({out, in}))) {}
  torch::Tensor forward(const torch::Tensor& input, const StepContext&) override {
    return torch::tanh(torch::linear(input, weight_));
  }
  void initialize(const RandomKey& key) override {
    torch::NoGradGuard no_grad;
    key.normal(std::span(weight_.data_ptr<float>(), static_cast<std::size_t>(weight_.numel())));
    weight_ *= 0.1;
  }
  const torch::Tensor& weight() const { return weight_; }

 private:
  torch::Tensor weight_;
};

class Decode : public model::Layer {
 public:
  explicit Decode(const torch::Tensor& weight) : weight_(register_parameter("weight", weight)) {}
  torch::Tensor forward(const torch::Tensor& input, const StepContext&) override {
    return torch::matmul(input, weight_);
  }

 private:
  torch::Tensor weight_;
};

}  // namespace

std::shared_ptr<model::LayerList> make_tied(const model::ModelOptions& options,
                                            const data::Shape& shape, std::uint64_t seed) {
  const std::int64_t inputs = shape.input.front();
  auto list = std::make_shared<model::LayerList>();
  const auto encode = std::make_shared<Encode>(inputs, options.hidden);
  const auto middle = std::make_shared<model::Linear>(options.hidden, options.hidden,
                                                      model::Linear::Activation::kRelu);
  list->add("in", encode).add("middle", middle).add("again", middle).add("once_more", middle);
  list->add("out", std::make_shared<Decode>(encode->weight()));
  list->add("last", std::make_shared<model::Linear>(inputs, shape.classes));
  list->initialize(seed);
  return list;
}

}  // namespace yoke::test
