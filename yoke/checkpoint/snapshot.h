#pragma once

#include <cstdint>
#include <string>

#include "yoke/tensor/named_hash.h"

namespace yoke::checkpoint {

/// All of S_k, as logical tensors: views of the live state, so nothing may change it while a
/// snapshot is in use.
struct Snapshot {
  std::int64_t step = 0;
  tensor::NamedTensors parameters;
  tensor::NamedTensors buffers;
  tensor::NamedTensors optimizer;  ///< "parameter/slot"
  tensor::NamedTensors train;      ///< the rest: best-so-far ...

  /// Every tensor under its part's prefix: "parameters/", "buffers/", "optimizer/", "train/".
  tensor::NamedTensors all() const;
};

/// The fixed hashes of a state (design, "Fixed names").
struct StateHashes {
  std::int64_t step = 0;
  std::string parameters_sha256, buffers_sha256, optimizer_sha256, state_sha256;
};
StateHashes hashes_of(const Snapshot& snapshot);

}  // namespace yoke::checkpoint
