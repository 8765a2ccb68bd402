#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace yoke::model {

/// Cross-entropy, a mean over the samples (or tokens) of the micro-batch. `output`: [n, classes] or
/// [n, length, vocabulary]; `target`: [n] or [n, length], int64.
at::Tensor cross_entropy(const at::Tensor& output, const at::Tensor& target);
/// How many of the samples (or tokens) are predicted right.
std::int64_t correct(const at::Tensor& output, const at::Tensor& target);

}  // namespace yoke::model
