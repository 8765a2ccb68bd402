#include "yoke/checkpoint/reader.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"
#include "yoke/base/log.h"
#include "yoke/checkpoint/manifest.h"

namespace yoke::checkpoint {

namespace fs = std::filesystem;

std::vector<std::int64_t> steps_present(const RunFolder& folder) {
  std::vector<std::int64_t> steps;
  std::error_code ignored;
  for (const auto& item : fs::directory_iterator(folder.checkpoints(), ignored)) {
    const std::string name = item.path().filename().string();
    std::int64_t step = -1;
    if (!name.starts_with("step-")) continue;
    const char* end = name.data() + name.size();
    if (auto [stop, error] = std::from_chars(name.data() + 5, end, step);
        error != std::errc{} || stop != end)
      continue;
    steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

namespace {

/// The files of a checkpoint, each checked against the manifest.
std::map<std::string, std::string> read_files(const fs::path& root,
                                              const nlohmann::json& manifest) {
  std::map<std::string, std::string> files;
  for (const auto& file : manifest.at("files")) {
    const std::string name = file.at("name");
    const fs::path path = root / name;
    std::string content;
    try {
      content = read_file(path);
    } catch (const IoError& error) {
      throw CheckpointError(cat("a file of the checkpoint is missing: ", error.what()));
    }
    if (content.size() != file.at("bytes").get<std::size_t>()) {
      throw CheckpointError(cat(path.string(), " has ", content.size(),
                                " bytes; its manifest says ", file.at("bytes"), "."));
    }
    if (crc32c(std::as_bytes(std::span(content))) != file.at("crc32c").get<std::uint32_t>()) {
      throw CheckpointError(cat(
          path.string(), " does not have the checksum that its manifest names: it is damaged."));
    }
    files[name] = std::move(content);
  }
  return files;
}

std::vector<std::byte> assemble(const nlohmann::json& tensor,
                                const std::map<std::string, std::string>& files,
                                const std::string& where) {
  const std::string name = tensor.at("name");
  const std::size_t width = size_of(dtype_from(tensor.at("dtype").get<std::string>()));
  std::size_t elements = 1;
  for (const auto& extent : tensor.at("shape")) elements *= extent.get<std::size_t>();
  std::vector<std::byte> bytes(elements * width);
  std::size_t filled = 0;
  for (const auto& piece : tensor.at("pieces")) {
    const auto first = piece.at("first").get<std::size_t>();
    const auto count = piece.at("count").get<std::size_t>();
    const auto offset = piece.at("offset").get<std::size_t>();
    const auto file = files.find(piece.at("file").get<std::string>());
    if (file == files.end() || first != filled || first + count > elements ||
        offset + count * width > file->second.size()) {
      throw CheckpointError(cat(where, ": the pieces of ", name, " do not fit together."));
    }
    std::memcpy(bytes.data() + first * width, file->second.data() + offset, count * width);
    filled += count;
  }
  if (filled != elements)
    throw CheckpointError(
        cat(where, ": ", name, " has ", filled, " of its ", elements, " elements."));
  return bytes;
}

}  // namespace

Reader::Reader(const RunFolder& folder, std::int64_t step) {
  const fs::path root = folder.checkpoint(step);
  where_ = (root / kManifestName).string();
  std::string text;
  try {
    text = read_file(where_);
  } catch (const IoError& error) {
    throw CheckpointError(
        cat("there is no complete checkpoint of step ", step, ": ", error.what()));
  }
  try {
    const nlohmann::json manifest = unseal(text, where_);
    if (manifest.at("step").get<std::int64_t>() != step) {
      throw CheckpointError(
          cat(where_, " is of step ", manifest.at("step"), ", not of step ", step, "."));
    }
    run_ = manifest.at("run");
    const auto files = read_files(root, manifest);
    snapshot_.step = step;
    const std::map<std::string, tensor::NamedTensors*> parts{{"parameters", &snapshot_.parameters},
                                                             {"buffers", &snapshot_.buffers},
                                                             {"optimizer", &snapshot_.optimizer},
                                                             {"train", &snapshot_.train}};
    for (const auto& tensor : manifest.at("tensors")) {
      const std::string name = tensor.at("name");
      const auto slash = name.find('/');
      const auto part = parts.find(name.substr(0, slash));
      if (part == parts.end())
        throw CheckpointError(cat(where_, ": no part of a state is called as in ", name, "."));
      auto& bytes = memory_[name] = assemble(tensor, files, where_);
      (*part->second)[name.substr(slash + 1)] = {
          dtype_from(tensor.at("dtype").get<std::string>()),
          tensor.at("shape").get<std::vector<std::int64_t>>(), bytes};
    }
  } catch (const nlohmann::json::exception& error) {
    throw CheckpointError(cat(where_, " lacks a field: ", error.what()));
  } catch (const ConfigError& error) {
    throw CheckpointError(cat(where_, ": ", error.what()));
  }
}

void Reader::read(const std::string& name, std::span<std::byte> out) const {
  const auto found = memory_.find(name);
  if (found == memory_.end()) {
    throw CheckpointError(
        cat(where_, " has no ", name, ": it belongs to another model or optimizer."));
  }
  if (found->second.size() != out.size()) {
    throw CheckpointError(cat(where_, ": ", name, " has ", found->second.size(),
                              " bytes; this run needs ", out.size(), "."));
  }
  std::memcpy(out.data(), found->second.data(), out.size());
}

std::int64_t newest_intact(const RunFolder& folder) {
  std::vector<std::int64_t> steps = steps_present(folder);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    try {
      return Reader(folder, *step).step();
    } catch (const CheckpointError& error) {
      log_warning(error.what(), " Trying the checkpoint before it.");
    }
  }
  if (steps.empty()) return -1;
  throw CheckpointError(cat("none of the ", steps.size(), " checkpoints in ",
                            folder.checkpoints().string(),
                            " is intact. Start anew with --fresh (the old folder is kept)."));
}

}  // namespace yoke::checkpoint
