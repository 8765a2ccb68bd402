#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "yoke/sync/leaf_hash.h"
#include "yoke/sync/leaf_schedule.h"
#include "yoke/tensor/arena_layout.h"

namespace yoke::sync {

/// Adds the gradients of one rank's leaves, tensor by tensor, in the canonical order, as they come
/// out of backward.
///
/// For each tensor a binary counter of waiting partial sums. An even leaf's gradient is kept as it
/// is; an odd leaf's is added, in one pass, to all the sums that it completes, in the memory of one
/// of them unless something else refers to it (a gradient may alias another tensor); the pass that
/// completes a block writes straight into the block's arena. A leaf without a gradient for a tensor
/// is absent: the sum passes through unchanged, and a block without any is filled with -0.0.
class GradientFolder {
 public:
  /// `block(b)`: the arena of this rank's block b, of layout.bytes().
  GradientFolder(const tensor::ArenaLayout& layout, std::function<std::byte*(int)> block);

  void begin_step();
  /// `last`: no other leaf of the step follows.
  void begin_leaf(const LeafSchedule::Leaf& leaf, bool last);
  /// A gradient of the current leaf; several for one tensor (micro-batches of the leaf) are added
  /// one after another.
  void add(std::size_t entry, at::Tensor gradient);
  /// The tensor has had its last gradient of the leaf: carries. Returns true if that was the last
  /// leaf of the step for it.
  bool finish(std::size_t entry);
  /// Finishes all tensors of the leaf that are not yet; calls `finished` for those whose last leaf
  /// this was.
  void end_leaf(const std::function<void(std::size_t)>& finished);
  /// Gives up the block in progress: sums that wait for its other leaves are forgotten.
  void drop_block();
  /// Hashes of the leaf's gradients are left here from the next finish() on; null: nowhere.
  void watch(LeafHash* hash) { watched_ = hash; }

 private:
  struct PerTensor {
    at::Tensor current;               ///< of the leaf in progress
    bool current_is_own = false;      ///< made here, so it may be added into
    std::vector<at::Tensor> waiting;  ///< by level; undefined: absent
    bool finished = false;
  };
  at::Tensor empty_like(std::size_t entry) const;

  tensor::ArenaLayout layout_;
  std::function<std::byte*(int)> block_;
  LeafSchedule::Leaf leaf_;
  bool last_ = false;
  LeafHash* watched_ = nullptr;
  std::vector<PerTensor> tensors_;
};

}  // namespace yoke::sync
