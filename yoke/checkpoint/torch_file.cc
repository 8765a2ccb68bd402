#include "yoke/checkpoint/torch_file.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "yoke/base/error.h"
#include "yoke/base/log.h"
#include "yoke/checkpoint/shape.h"
#include "yoke/checkpoint/state_dict_pickle.h"
#include "yoke/checkpoint/zip_archive.h"

namespace yoke::checkpoint {

namespace {

constexpr const char* kPickle = "/data.pkl";

/// The folder inside the archive, which is named after the file it was first saved as.
std::string prefix_of(const ZipArchive& archive, const std::string& where) {
  for (const auto& [name, entry] : archive.entries()) {
    if (!name.ends_with(kPickle)) continue;
    const std::string prefix = name.substr(0, name.size() - std::strlen(kPickle));
    if (archive.entries().contains(prefix + "/constants.pkl")) {
      throw CheckpointError(cat(where,
                                " is a TorchScript model. Save its weights: "
                                "torch.save(torch.jit.load(path).state_dict(), new_path)."));
    }
    return prefix;
  }
  throw CheckpointError(cat(where, " is an archive, but not one that torch.save() wrote."));
}

void require_little_endian(const ZipArchive& archive, const std::string& prefix,
                           const std::string& where) {
  const std::string name = prefix + "/byteorder";
  if (archive.entries().contains(name) && archive.read(name) != "little")
    throw CheckpointError(
        cat(where, " was saved on a big-endian machine. Save it again on this one."));
}

/// One past the last element of the storage that the tensor uses; throws if that lies outside.
std::uint64_t end_in_storage(const StoredTensor& tensor, std::uint64_t elements,
                             const std::string& where) {
  const auto fail = [&] {
    throw CheckpointError(cat(
        where, ": ", tensor.name, " reaches beyond its storage of ", tensor.storage_elements,
        " elements: the file is damaged, or an expanded tensor, to be saved as .contiguous()."));
  };
  // An expanded tensor could ask for any amount of memory.
  if (tensor.offset < 0 || elements > tensor.storage_elements) fail();
  if (elements == 0) return static_cast<std::uint64_t>(tensor.offset);
  auto last = static_cast<std::uint64_t>(tensor.offset);
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    const auto steps = static_cast<std::uint64_t>(tensor.shape[axis] - 1);
    const auto stride = static_cast<std::uint64_t>(tensor.strides[axis]);
    if (tensor.strides[axis] < 0 || (steps > 0 && stride > tensor.storage_elements / steps)) fail();
    last += steps * stride;
    if (last >= tensor.storage_elements) fail();
  }
  if (last >= tensor.storage_elements) fail();
  return last + 1;
}

bool is_row_major(const StoredTensor& tensor) {
  std::int64_t expected = 1;
  for (std::size_t axis = tensor.shape.size(); axis-- > 0;) {
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != expected) return false;
    expected *= tensor.shape[axis];
  }
  return true;
}

/// Copies elements in the tensor's order out of the storage's piece that begins at its offset.
void gather(const StoredTensor& tensor, std::span<const std::byte> storage,
            std::span<std::byte> out) {
  const std::size_t width = size_of(tensor.dtype);
  std::vector<std::int64_t> index(tensor.shape.size(), 0);
  std::int64_t from = 0;
  for (std::size_t at = 0; at < out.size(); at += width) {
    std::memcpy(out.data() + at, storage.data() + static_cast<std::size_t>(from) * width, width);
    for (std::size_t axis = index.size(); axis-- > 0;) {
      from += tensor.strides[axis];
      if (++index[axis] < tensor.shape[axis]) break;
      from -= tensor.strides[axis] * tensor.shape[axis];
      index[axis] = 0;
    }
  }
}

}  // namespace

Weights read_torch_file(const InputFile& file) {
  const std::string where = file.path().string();
  const ZipArchive archive(file);
  const std::string prefix = prefix_of(archive, where);
  require_little_endian(archive, prefix, where);
  if (!archive.has_checksums())
    log_warning(where, " was saved without checksums: damage to it would not be noticed.");
  Weights weights;
  std::set<std::string> verified;
  for (const auto& tensor : read_state_dict_pickle(archive.read(prefix + kPickle), where)) {
    const auto elements = elements_of(tensor.shape);
    if (!elements)
      throw CheckpointError(cat(where, ": the shape of ", tensor.name, " is impossible."));
    const std::uint64_t width = size_of(tensor.dtype);
    const std::string name = prefix + "/data/" + tensor.storage;
    const auto& storage = archive.entry(name);
    if (storage.bytes / width < tensor.storage_elements)
      throw CheckpointError(cat(where, ": the storage of ", tensor.name, " is cut off."));
    const std::uint64_t end = end_in_storage(tensor, *elements, where);
    if (verified.insert(name).second) archive.verify(name);
    const auto out = weights.add(tensor.name, tensor.dtype, tensor.shape);
    const std::uint64_t start = storage.offset + static_cast<std::uint64_t>(tensor.offset) * width;
    if (out.empty()) continue;
    if (is_row_major(tensor)) {
      file.read(start, out);
    } else {
      std::vector<std::byte> piece((end - static_cast<std::uint64_t>(tensor.offset)) * width);
      file.read(start, piece);
      gather(tensor, piece, out);
    }
  }
  return weights;
}

}  // namespace yoke::checkpoint
