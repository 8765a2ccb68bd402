#include "yoke/checkpoint/contents.h"

#include "yoke/base/error.h"
#include "yoke/checkpoint/input_file.h"
#include "yoke/checkpoint/manifest.h"
#include "yoke/checkpoint/run_id.h"
#include "yoke/checkpoint/shape.h"

namespace yoke::checkpoint {

namespace {

void require_whole(const TensorEntry& tensor, const std::string& name, const Contents& contents) {
  const std::uint64_t width = size_of(tensor.dtype);
  std::uint64_t filled = 0;
  for (const auto& piece : tensor.pieces) {
    const auto file = contents.files.find(piece.file);
    if (file == contents.files.end() || piece.first != filled ||
        piece.count > tensor.elements - filled || piece.offset > file->second.bytes ||
        piece.count * width > file->second.bytes - piece.offset) {
      throw CheckpointError(cat(contents.where, ": the pieces of ", name, " do not fit together."));
    }
    filled += piece.count;
  }
  if (filled != tensor.elements) {
    throw CheckpointError(cat(contents.where, ": ", name, " has ", filled, " of its ",
                              tensor.elements, " elements."));
  }
}

FileEntry file_from(const nlohmann::json& json, const std::string& name, const std::string& where) {
  // It is read below the checkpoint's folder, and nowhere else.
  if (name.empty() || name.starts_with('.') || name.find('/') != std::string::npos)
    throw CheckpointError(cat(where, ": \"", name, "\" cannot be a file of a checkpoint."));
  return {json.at("bytes"), json.at("crc32c")};
}

TensorEntry tensor_from(const nlohmann::json& json, const std::string& name,
                        const std::string& where) {
  TensorEntry tensor;
  tensor.dtype = dtype_from(json.at("dtype").get<std::string>());
  tensor.shape = json.at("shape").get<std::vector<std::int64_t>>();
  const auto elements = elements_of(tensor.shape);
  if (!elements) throw CheckpointError(cat(where, ": the shape of ", name, " is impossible."));
  tensor.elements = *elements;
  for (const auto& piece : json.at("pieces")) {
    tensor.pieces.push_back(
        {piece.at("file"), piece.at("offset"), piece.at("first"), piece.at("count")});
  }
  return tensor;
}

}  // namespace

std::uint64_t Contents::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [name, file] : files) sum += file.bytes;
  return sum;
}

Contents contents_from(const nlohmann::json& manifest, const std::string& where) {
  Contents contents;
  contents.where = where;
  try {
    contents.step = manifest.at("step");
    contents.generation = manifest.value("generation", std::uint64_t{0});
    contents.world_size = manifest.value("world_size", 1);
    contents.time = manifest.value("time", "");
    contents.run_id = manifest.value("run_id", "");
    if (const auto loss = manifest.find("evaluation_loss");
        loss != manifest.end() && loss->is_number())
      contents.evaluation_loss = loss->get<double>();
    contents.run = manifest.at("run");
    for (const auto& file : manifest.at("files")) {
      const std::string name = file.at("name");
      contents.files[name] = file_from(file, name, where);
    }
    for (const auto& json : manifest.at("tensors")) {
      const std::string name = json.at("name");
      const auto tensor = tensor_from(json, name, where);
      require_whole(tensor, name, contents);
      contents.tensors[name] = tensor;
    }
  } catch (const nlohmann::json::exception& error) {
    throw CheckpointError(cat(where, " lacks a field: ", error.what()));
  } catch (const ConfigError& error) {
    throw CheckpointError(cat(where, ": ", error.what()));
  }
  return contents;
}

Contents contents_of(const RunFolder& folder, std::int64_t step) {
  const std::string where = (folder.checkpoint(step) / kManifestName).string();
  std::string text;
  try {
    text = InputFile(where).all();
  } catch (const CheckpointError& error) {
    throw CheckpointError(
        cat("there is no complete checkpoint of step ", step, ": ", error.what()));
  }
  Contents contents = contents_from(unseal(text, where), where);
  if (contents.step != step)
    throw CheckpointError(cat(where, " is of step ", contents.step, ", not of step ", step, "."));
  const auto own = run_id_of(folder);
  if (own && !contents.run_id.empty() && contents.run_id != *own) {
    throw CheckpointError(
        cat(where, " belongs to another run (", contents.run_id, "; this one is ", *own, ")."));
  }
  return contents;
}

}  // namespace yoke::checkpoint
