#include "yoke/sync/gradient_folder.h"

#include <torch/torch.h>

#include <array>
#include <span>

#include "yoke/base/error.h"
#include "yoke/sync/fold.h"
#include "yoke/tensor/bridge.h"

namespace yoke::sync {

namespace {

/// Nobody else sees its memory, so it may be written.
bool is_ours(const at::Tensor& tensor) {
  return tensor.use_count() == 1 && tensor.storage().use_count() == 1;
}

}  // namespace

GradientFolder::GradientFolder(const tensor::ArenaLayout& layout,
                               std::function<std::byte*(int)> block)
    : layout_(layout), block_(std::move(block)), tensors_(layout.size()) {}

void GradientFolder::begin_step() {
  drop_block();  // of a step that was given up
}

void GradientFolder::drop_block() {
  for (PerTensor& tensor : tensors_) {
    tensor.current.reset();
    for (at::Tensor& sum : tensor.waiting) sum.reset();
  }
}

void GradientFolder::begin_leaf(const LeafSchedule::Leaf& leaf, bool last) {
  leaf_ = leaf;
  last_ = last;
  for (PerTensor& tensor : tensors_) tensor.finished = false;
}

void GradientFolder::add(std::size_t entry, at::Tensor gradient) {
  PerTensor& tensor = tensors_[entry];
  const auto& place = layout_[entry];
  YOKE_ENSURE(!tensor.finished, place.name, " got a gradient after its leaf was finished.");
  if (gradient.layout() != at::kStrided) {
    throw ConfigError(cat(place.name,
                          " has a sparse gradient. yoke adds dense gradients: build the embedding "
                          "with sparse(false)."));
  }
  YOKE_ENSURE_EQ(gradient.numel(), static_cast<std::int64_t>(place.elements), place.name);
  if (gradient.scalar_type() != tensor::scalar_type(place.dtype))
    gradient = gradient.to(tensor::scalar_type(place.dtype));
  gradient = gradient.contiguous();
  if (!tensor.current.defined()) {
    tensor.current = std::move(gradient);
    tensor.current_is_own = false;
    return;
  }
  at::Tensor sum = tensor.current_is_own ? tensor.current : empty_like(entry);
  const std::byte* operands[] = {tensor::bytes_of(gradient).data(),
                                 tensor::bytes_of(tensor.current).data()};
  fold(operands, tensor::mutable_bytes_of(sum).data(), place.elements, place.dtype);
  tensor.current = std::move(sum);
  tensor.current_is_own = true;
}

bool GradientFolder::finish(std::size_t entry) {
  PerTensor& tensor = tensors_[entry];
  const auto& place = layout_[entry];
  tensor.finished = true;
  if (watched_ != nullptr && tensor.current.defined())
    watched_->add(entry, tensor::bytes_of(tensor.current));
  if (leaf_.block == LeafSchedule::Leaf::kNowhere) {
    tensor.current.reset();
    return false;
  }
  if (tensor.waiting.size() <= static_cast<std::size_t>(leaf_.merges))
    tensor.waiting.resize(static_cast<std::size_t>(leaf_.merges) + 1);

  std::array<const std::byte*, 65> operands;
  std::array<at::Tensor*, 65> terms;
  std::size_t count = 0;
  const auto take = [&](at::Tensor& term) {
    if (!term.defined()) return;
    terms[count] = &term;
    operands[count++] = tensor::bytes_of(term).data();
  };
  take(tensor.current);
  for (int level = 0; level < leaf_.merges; ++level)
    take(tensor.waiting[static_cast<std::size_t>(level)]);
  const std::span<const std::byte* const> all(operands.data(), count);

  if (leaf_.block >= 0) {
    std::byte* out = block_(leaf_.block) + place.offset;
    if (count == 0) {
      fill_absent(out, place.elements, place.dtype);
    } else {
      fold(all, out, place.elements, place.dtype);
    }
  } else {
    at::Tensor& waits = tensor.waiting[static_cast<std::size_t>(leaf_.merges)];
    if (count == 0) {
      waits.reset();
    } else if (count == 1) {
      waits = *terms[0];
    } else {
      // New memory would be fetched once more, only to be overwritten.
      at::Tensor sum = is_ours(*terms[1]) ? std::move(*terms[1]) : empty_like(entry);
      fold(all, tensor::mutable_bytes_of(sum).data(), place.elements, place.dtype);
      waits = std::move(sum);
    }
  }
  for (int level = 0; level < leaf_.merges; ++level)
    tensor.waiting[static_cast<std::size_t>(level)].reset();
  tensor.current.reset();
  return last_;
}

void GradientFolder::end_leaf(const std::function<void(std::size_t)>& finished) {
  for (std::size_t entry = 0; entry < tensors_.size(); ++entry) {
    if (!tensors_[entry].finished && finish(entry)) finished(entry);
  }
}

at::Tensor GradientFolder::empty_like(std::size_t entry) const {
  const auto& place = layout_[entry];
  return torch::empty({static_cast<std::int64_t>(place.elements)},
                      torch::TensorOptions().dtype(tensor::scalar_type(place.dtype)));
}

}  // namespace yoke::sync
