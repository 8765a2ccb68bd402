#include "yoke/checkpoint/writer.h"

#include <array>
#include <filesystem>

#include "yoke/base/error.h"
#include "yoke/base/files.h"

namespace yoke::checkpoint {

namespace fs = std::filesystem;

void write(const RunFolder& folder, const Snapshot& snapshot, const nlohmann::json& extra,
           const WriteOptions& options, FaultPlan& faults) {
  const tensor::NamedTensors all = snapshot.all();
  TensorIndex index;
  std::vector<Slice> slices;
  for (const auto& [name, tensor] : all) {
    index[name] = {tensor.dtype, tensor.shape};
    slices.push_back({name, tensor.dtype, 0, tensor.bytes});
  }
  const Attempt attempt(folder, snapshot.step, options.generation);
  faults.reach("checkpoint.1", snapshot.step);
  try {
    attempt.begin();
    faults.reach("checkpoint.2", snapshot.step);
    const std::array shards{attempt.write_shard(0, slices)};
    attempt.commit(index, shards, extra, options, faults);
  } catch (const Error&) {
    // On a full disk above all: what was written of it would only take more room.
    attempt.abandon();
    throw;
  }
}

void remove_leftovers(const RunFolder& folder) {
  std::error_code ignored;
  for (const auto& item : fs::directory_iterator(folder.checkpoints(), ignored)) {
    if (item.path().extension() == ".tmp") fs::remove_all(item.path(), ignored);
  }
  if (fs::exists(folder.checkpoints())) remove_abandoned_temporaries(folder.checkpoints());
}

}  // namespace yoke::checkpoint
