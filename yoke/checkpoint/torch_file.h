#pragma once

#include "yoke/checkpoint/input_file.h"
#include "yoke/checkpoint/weights.h"

namespace yoke::checkpoint {

/// Reads what Python's torch.save(model.state_dict(), path) wrote. Views, transposed and shared
/// tensors become tensors of their own, row-major. Each storage is compared with its checksum.
/// Throws CheckpointError: damaged, or something else than a state_dict.
Weights read_torch_file(const InputFile& file);

}  // namespace yoke::checkpoint
