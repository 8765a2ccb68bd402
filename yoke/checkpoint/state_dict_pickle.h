#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/dtype.h"

namespace yoke::checkpoint {

/// A tensor as a state_dict describes it: a view of a storage, which lies in a file of its own.
struct StoredTensor {
  std::string name{};
  DType dtype = DType::kFloat32;
  std::string storage{};  ///< its key, the name of the file
  std::uint64_t storage_elements = 0;
  std::int64_t offset = 0;  ///< of the first element in the storage
  std::vector<std::int64_t> shape{};
  std::vector<std::int64_t> strides{};  ///< in elements, as many as extents
};

/// Reads the pickle of an OrderedDict (or dict) of tensors. It knows the instructions and the five
/// kinds of objects that a state_dict needs (dictionaries, tuples, strings and numbers, storages,
/// torch._utils._rebuild_tensor_v2), runs nothing, and refuses all else: a name of any other
/// function or class is an error that says it. Throws CheckpointError that begins with `where`.
std::vector<StoredTensor> read_state_dict_pickle(std::string_view pickle, const std::string& where);

}  // namespace yoke::checkpoint
