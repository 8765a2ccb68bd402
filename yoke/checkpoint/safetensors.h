#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "yoke/checkpoint/input_file.h"
#include "yoke/checkpoint/weights.h"
#include "yoke/tensor/named_hash.h"

namespace yoke::checkpoint {

/// Writes tensors as safetensors (github.com/huggingface/safetensors, format 0.4): the size of the
/// header as a 64-bit little-endian number, the header in JSON padded with spaces to a multiple of
/// 8, the bytes without holes, the widest dtypes first so that each tensor is aligned. `metadata`
/// goes under "__metadata__". Replaces the file atomically. Throws IoError.
void write_safetensors(const std::filesystem::path& path, const tensor::NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata);

/// Throws CheckpointError: a header that is too large, not JSON, or does not describe the file
/// exactly (holes, overlaps, bytes left over), or a dtype that yoke does not have.
Weights read_safetensors(const InputFile& file);

}  // namespace yoke::checkpoint
