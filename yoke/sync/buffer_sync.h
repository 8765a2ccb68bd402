#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "yoke/sync/gradient_folder.h"
#include "yoke/sync/model_tensors.h"
#include "yoke/sync/summary.h"
#include "yoke/tensor/named_hash.h"

namespace yoke::sync {

/// Buffers (the running statistics of batch norm ...) by the rule of design, section 2.3. Every
/// micro-batch starts from the buffers of S_k. One that no micro-batch changed stays as it is;
/// changed float ones are averaged in the tree, weighted by samples: they travel as the last
/// tensors of the gradient arena. Changed integer ones must agree.
class BufferSync {
 public:
  /// The module's buffers now are those of S_0. `first_entry`: of the float ones in the gradient
  /// layout.
  BufferSync(const ModelTensors& tensors, std::size_t first_entry);

  std::size_t integer_bytes() const { return integer_bytes_; }
  /// Gives the module the buffers of S_k.
  void reset();
  /// After a micro-batch: hands its buffers to the folder and the summary. Throws DataError when an
  /// integer buffer differs from what an earlier micro-batch of this rank made of it.
  void take(std::int64_t weight, bool first_of_rank, GradientFolder& folder, Summary& summary);
  /// The buffers become those of S_{k+1}: averages out of the reduced arena, integers out of the
  /// summary. Throws DataError that names the ranks when integers differ; the buffers are those of
  /// S_k then.
  void advance(const std::byte* reduced, const tensor::ArenaLayout& layout, const Summary& summary);
  /// The module's buffers were replaced (by rank 0's): they are S_k's now.
  void adopt();
  /// The buffers of S_k by name; views.
  tensor::NamedTensors named() const;
  /// Fills them from `load(name, bytes)`.
  void restore(const std::function<void(const std::string&, std::span<std::byte>)>& load);

 private:
  std::vector<NamedTensor> averaged_, agreed_;
  std::vector<at::Tensor> averaged_base_, agreed_base_;  ///< of S_k
  std::size_t first_entry_;
  std::size_t integer_bytes_ = 0;
};

}  // namespace yoke::sync
