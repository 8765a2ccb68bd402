#include "yoke/checkpoint/reader.h"

#include <algorithm>
#include <charconv>

#include "yoke/base/error.h"
#include "yoke/base/log.h"
#include "yoke/checkpoint/recovery.h"

namespace yoke::checkpoint {

namespace fs = std::filesystem;

std::vector<std::int64_t> steps_present(const RunFolder& folder) {
  std::vector<std::int64_t> steps;
  std::error_code error;
  for (fs::directory_iterator item(folder.checkpoints(), error), end; !error && item != end;
       item.increment(error)) {
    const std::string name = item->path().filename().string();
    std::int64_t step = -1;
    if (!name.starts_with("step-")) continue;
    const char* last = name.data() + name.size();
    if (auto [stop, wrong] = std::from_chars(name.data() + 5, last, step);
        wrong != std::errc{} || stop != last)
      continue;
    steps.push_back(step);
  }
  // One that cannot be looked into is not one without checkpoints.
  if (error && error != std::errc::no_such_file_or_directory) {
    throw IoError(cat("cannot list ", folder.checkpoints().string(), ": ", error.message(),
                      ". Check that this user may read it."));
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

Reader::Reader(const RunFolder& folder, std::int64_t step, Verify verify)
    : contents_(contents_of(folder, step)) {
  for (const auto& [name, tensor] : contents_.tensors) {
    const std::string part = name.substr(0, name.find('/') + 1);
    if (part != "parameters/" && part != "buffers/" && part != "optimizer/" && part != "train/") {
      throw CheckpointError(
          cat(contents_.where, ": no part of a state is called as in ", name, "."));
    }
  }
  for (const auto& [name, entry] : contents_.files) {
    const auto [file, is_new] = files_.try_emplace(name, folder.checkpoint(step) / name);
    if (file->second.size() != entry.bytes) {
      throw CheckpointError(cat(file->second.path().string(), " has ", file->second.size(),
                                " bytes; its manifest says ", entry.bytes, "."));
    }
    if (verify == Verify::kAll) this->verify(name);
  }
}

void Reader::verify(const std::string& name) const {
  bool& done = verified_[name];
  if (done) return;
  const InputFile& file = files_.at(name);
  if (file.crc32c() != contents_.files.at(name).crc32c) {
    throw CheckpointError(
        cat(file.path().string(),
            " does not have the checksum that its manifest names: it is damaged."));
  }
  done = true;
}

const InputFile& Reader::file(const std::string& name) const {
  verify(name);
  return files_.at(name);
}

const TensorEntry& Reader::entry(const std::string& name) const {
  const auto found = contents_.tensors.find(name);
  if (found == contents_.tensors.end()) {
    throw CheckpointError(
        cat(contents_.where, " has no ", name, ": it belongs to another model or optimizer."));
  }
  return found->second;
}

void Reader::read(const std::string& name, std::span<std::byte> out) const {
  const TensorEntry& tensor = entry(name);
  if (tensor.bytes() != out.size()) {
    throw CheckpointError(cat(contents_.where, ": ", name, " has ", tensor.bytes(),
                              " bytes; this run needs ", out.size(), "."));
  }
  read_range(name, 0, out);
}

void Reader::read_range(const std::string& name, std::uint64_t first,
                        std::span<std::byte> out) const {
  const TensorEntry& tensor = entry(name);
  const std::uint64_t width = size_of(tensor.dtype);
  const std::uint64_t end = first + out.size() / width;
  if (out.size() % width != 0 || end < first || end > tensor.elements) {
    throw CheckpointError(cat(contents_.where, ": ", name, " has ", tensor.elements, " elements; ",
                              out.size(), " bytes from element ", first, " on are none of them."));
  }
  for (const auto& piece : tensor.pieces) {
    const std::uint64_t from = std::max(first, piece.first);
    const std::uint64_t to = std::min(end, piece.first + piece.count);
    if (from >= to) continue;
    file(piece.file)
        .read(piece.offset + (from - piece.first) * width,
              out.subspan(static_cast<std::size_t>((from - first) * width),
                          static_cast<std::size_t>((to - from) * width)));
  }
}

const Snapshot& Reader::snapshot() const {
  snapshot_.step = step();
  const std::map<std::string, tensor::NamedTensors*> parts{{"parameters", &snapshot_.parameters},
                                                           {"buffers", &snapshot_.buffers},
                                                           {"optimizer", &snapshot_.optimizer},
                                                           {"train", &snapshot_.train}};
  for (const auto& [name, tensor] : contents_.tensors) {
    const auto [memory, is_new] = memory_.try_emplace(name);
    if (!is_new) continue;
    memory->second.resize(static_cast<std::size_t>(tensor.bytes()));
    read(name, memory->second);
    const auto slash = name.find('/');
    (*parts.at(name.substr(0, slash)))[name.substr(slash + 1)] = {tensor.dtype, tensor.shape,
                                                                  memory->second};
  }
  return snapshot_;
}

std::int64_t newest_intact(const RunFolder& folder) {
  const Search search = search_intact(folder);
  for (const auto& damage : search.damaged)
    log_warning(damage.why, " Trying the checkpoint before it.");
  return search.step;
}

}  // namespace yoke::checkpoint
