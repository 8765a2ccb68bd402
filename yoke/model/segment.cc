#include "yoke/model/segment.h"

#include <torch/torch.h>

namespace yoke::model {
namespace {

/// The place of a segment in the outer graph; the segment's own graph hangs on `output`.
struct Segment : torch::autograd::Node {
  at::Tensor input, output;
  std::size_t entry = 0;
  Differentiating now;

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    if (!gradients[0].defined()) return {at::Tensor()};
    *now = entry;
    try {
      torch::autograd::backward({output}, {gradients[0]});
    } catch (...) {
      now->reset();
      throw;
    }
    now->reset();
    return {input.grad()};
  }

  void release_variables() override {
    input.reset();
    output.reset();
  }
};

}  // namespace

at::Tensor in_a_segment(const at::Tensor& input,
                        const std::function<at::Tensor(const at::Tensor&)>& run, std::size_t entry,
                        const Differentiating& now) {
  at::Tensor own = input.detach();
  if (input.requires_grad()) own.requires_grad_();
  at::Tensor output = run(own);
  if (!output.requires_grad()) return output;
  auto segment = c10::make_intrusive<Segment>();
  segment->input = std::move(own);
  segment->entry = entry;
  segment->now = now;
  segment->set_next_edges(torch::autograd::collect_next_edges(input));
  at::Tensor result = output.detach();
  segment->output = std::move(output);
  torch::autograd::create_gradient_edge(result, segment);
  return result;
}

}  // namespace yoke::model
