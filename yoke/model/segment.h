#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

namespace yoke::model {

/// The entry of a layer list that is being differentiated by itself, if one is.
using Differentiating = std::shared_ptr<std::optional<std::size_t>>;

/// `run(input)`, differentiated by a backward pass of its own once that of what follows is through:
/// hooks of its parameters fire for this use alone, and `now` holds `entry` while they do. The
/// gradient of the input is the same bits. Not for a second derivative, nor for
/// torch::autograd::grad of parameters in it, which sees none.
at::Tensor in_a_segment(const at::Tensor& input,
                        const std::function<at::Tensor(const at::Tensor&)>& run, std::size_t entry,
                        const Differentiating& now);

}  // namespace yoke::model
