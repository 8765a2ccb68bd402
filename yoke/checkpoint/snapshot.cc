#include "yoke/checkpoint/snapshot.h"

namespace yoke::checkpoint {

tensor::NamedTensors Snapshot::all() const {
  tensor::NamedTensors all;
  auto take = [&](const std::string& prefix, const tensor::NamedTensors& part) {
    for (const auto& [name, tensor] : part) all[prefix + name] = tensor;
  };
  take("parameters/", parameters);
  take("buffers/", buffers);
  take("optimizer/", optimizer);
  take("train/", train);
  return all;
}

StateHashes hashes_of(const Snapshot& snapshot) {
  return {snapshot.step, tensor::sha256_of(snapshot.parameters),
          tensor::sha256_of(snapshot.buffers), tensor::sha256_of(snapshot.optimizer),
          tensor::sha256_of(snapshot.all())};
}

}  // namespace yoke::checkpoint
