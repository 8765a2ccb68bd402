#include "yoke/sync/buffer_sync.h"

#include <torch/torch.h>

#include <cstring>

#include "yoke/base/error.h"
#include "yoke/sync/fold.h"
#include "yoke/tensor/bridge.h"

namespace yoke::sync {

namespace {

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor whole_a = a.contiguous(), whole_b = b.contiguous();
  const auto left = tensor::bytes_of(whole_a);
  const auto right = tensor::bytes_of(whole_b);
  return left.size() == right.size() && std::memcmp(left.data(), right.data(), left.size()) == 0;
}

// Buffers are small, and there are several for each micro-batch: plain copies and loops cost a
// fraction of libtorch's operators.
void overwrite(at::Tensor buffer, const at::Tensor& base) {
  if (!buffer.is_contiguous()) {
    buffer.copy_(base);
    return;
  }
  std::memcpy(tensor::mutable_bytes_of(buffer).data(), tensor::bytes_of(base).data(),
              base.nbytes());
  buffer.unsafeGetTensorImpl()->bump_version();
}

at::Tensor times(const at::Tensor& buffer, std::int64_t weight, DType dtype) {
  const at::Tensor whole = buffer.contiguous();
  at::Tensor product = at::empty_like(whole);
  multiply(tensor::bytes_of(whole).data(), static_cast<double>(weight),
           tensor::mutable_bytes_of(product).data(), static_cast<std::size_t>(whole.numel()),
           dtype);
  return product;
}

[[noreturn]] void disagree(const std::string& name, const std::string& who) {
  throw DataError(cat("the integer buffer ", name, " became different on ", who,
                      ". yoke keeps an integer buffer only if every micro-batch leaves the same "
                      "value in it; make it a "
                      "float buffer (averaged), or take it out of the module."));
}

}  // namespace

BufferSync::BufferSync(const ModelTensors& tensors, std::size_t first_entry)
    : averaged_(tensors.averaged), agreed_(tensors.agreed), first_entry_(first_entry) {
  for (const auto& buffer : agreed_) integer_bytes_ += buffer.tensor.nbytes();
  adopt();
}

void BufferSync::adopt() {
  averaged_base_.clear();
  agreed_base_.clear();
  for (const auto& buffer : averaged_)
    averaged_base_.push_back(buffer.tensor.detach().clone(at::MemoryFormat::Contiguous));
  for (const auto& buffer : agreed_)
    agreed_base_.push_back(buffer.tensor.detach().clone(at::MemoryFormat::Contiguous));
}

void BufferSync::reset() {
  torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < averaged_.size(); ++i)
    overwrite(averaged_[i].tensor, averaged_base_[i]);
  for (std::size_t i = 0; i < agreed_.size(); ++i) overwrite(agreed_[i].tensor, agreed_base_[i]);
}

void BufferSync::take(std::int64_t weight, bool first_of_rank, GradientFolder& folder,
                      Summary& summary) {
  torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < averaged_.size(); ++i) {
    const at::Tensor& now = averaged_[i].tensor;
    if (!same_bytes(now, averaged_base_[i])) summary.set_present(first_entry_ + i);
    folder.add(first_entry_ + i, times(now, weight, tensor::dtype_of(now, averaged_[i].name)));
  }
  std::span<std::byte> all = summary.integers();
  std::size_t at = 0;
  for (const auto& buffer : agreed_) {
    const at::Tensor now = buffer.tensor.contiguous();
    const auto bytes = tensor::bytes_of(now);
    if (!first_of_rank && std::memcmp(all.data() + at, bytes.data(), bytes.size()) != 0) {
      disagree(buffer.name, "two micro-batches of this rank");
    }
    std::memcpy(all.data() + at, bytes.data(), bytes.size());
    at += bytes.size();
  }
  summary.set_integers_valid();
}

void BufferSync::advance(const std::byte* reduced, const tensor::ArenaLayout& layout,
                         const Summary& summary) {
  torch::NoGradGuard no_grad;
  // First what may fail, so that a failure changes nothing.
  const auto everyone = summary.all_integers();
  std::size_t at = 0;
  for (const auto& buffer : agreed_) {
    for (const auto& theirs : everyone) {
      if (std::memcmp(theirs.bytes.data() + at, everyone.front().bytes.data() + at,
                      buffer.tensor.nbytes()) == 0)
        continue;
      reset();
      disagree(buffer.name, cat("rank ", everyone.front().rank, " and rank ", theirs.rank));
    }
    at += buffer.tensor.nbytes();
  }
  for (std::size_t i = 0; i < averaged_.size(); ++i) {
    if (!summary.present(first_entry_ + i)) continue;
    const auto& entry = layout[first_entry_ + i];
    averaged_base_[i] =
        tensor::view_of(const_cast<std::byte*>(reduced) + entry.offset, entry.dtype, entry.shape)
            .clone();
  }
  at = 0;
  for (std::size_t i = 0; i < agreed_.size() && !everyone.empty(); ++i) {
    const auto base = tensor::mutable_bytes_of(agreed_base_[i]);
    std::memcpy(base.data(), everyone.front().bytes.data() + at, base.size());
    at += base.size();
  }
  reset();
}

tensor::NamedTensors BufferSync::named() const {
  tensor::NamedTensors all;
  auto take = [&](const std::vector<NamedTensor>& buffers, const std::vector<at::Tensor>& values) {
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const at::Tensor& value = values[i];
      all[buffers[i].name] = {tensor::dtype_of(value, buffers[i].name), value.sizes().vec(),
                              tensor::bytes_of(value)};
    }
  };
  take(averaged_, averaged_base_);
  take(agreed_, agreed_base_);
  return all;
}

void BufferSync::restore(
    const std::function<void(const std::string&, std::span<std::byte>)>& load) {
  for (std::size_t i = 0; i < averaged_.size(); ++i)
    load(averaged_[i].name, tensor::mutable_bytes_of(averaged_base_[i]));
  for (std::size_t i = 0; i < agreed_.size(); ++i)
    load(agreed_[i].name, tensor::mutable_bytes_of(agreed_base_[i]));
  reset();
}

}  // namespace yoke::sync
