#include "yoke/checkpoint/weights.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "yoke/base/error.h"
#include "yoke/checkpoint/input_file.h"
#include "yoke/checkpoint/safetensors.h"
#include "yoke/checkpoint/shape.h"
#include "yoke/checkpoint/torch_file.h"

namespace yoke::checkpoint {

namespace {

constexpr std::size_t kMostNamed = 8;

/// A line for one kind of difference: the first names, and how many there are.
std::string line(const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  std::string text = cat("\n  ", what, ":");
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i)
    text += cat(i == 0 ? " " : ", ", names[i]);
  if (names.size() > kMostNamed) text += cat(" and ", names.size() - kMostNamed, " more");
  return text;
}

}  // namespace

std::span<std::byte> Weights::add(const std::string& name, DType dtype,
                                  std::vector<std::int64_t> shape) {
  const auto elements = elements_of(shape);
  if (!elements) throw CheckpointError(cat("the shape of ", name, " is impossible."));
  const auto [memory, is_new] = memory_.try_emplace(name);
  if (!is_new) throw CheckpointError(cat("there are two tensors called ", name, "."));
  memory->second.resize(static_cast<std::size_t>(*elements) * size_of(dtype));
  tensors_[name] = {dtype, std::move(shape), memory->second};
  return memory->second;
}

Weights load_weights(const std::filesystem::path& path) {
  const InputFile file(path);
  std::array<char, 9> head{};
  const std::size_t known =
      static_cast<std::size_t>(std::min<std::uint64_t>(head.size(), file.size()));
  file.read(0, std::as_writable_bytes(std::span(head)).first(known));
  if (std::memcmp(head.data(), "PK\x03\x04", 4) == 0) return read_torch_file(file);
  if (head[8] == '{') return read_safetensors(file);
  if (head[0] == '\x80') {
    throw CheckpointError(
        cat(path.string(),
            " is a pickle without archive, as PyTorch wrote before 1.6. Load it in "
            "Python and torch.save() it again."));
  }
  throw CheckpointError(
      cat(path.string(), " is neither a safetensors file nor one that torch.save() wrote."));
}

void copy_weights(const Weights& weights, const std::map<std::string, Place>& model,
                  const std::string& source) {
  std::vector<std::string> missing, unexpected, different;
  for (const auto& [name, place] : model) {
    const auto found = weights.tensors().find(name);
    if (found == weights.tensors().end()) {
      missing.push_back(name);
    } else if (found->second.shape != place.shape || found->second.dtype != place.dtype) {
      different.push_back(cat(name, " (", name_of(found->second.dtype), " ",
                              shown(found->second.shape), ", the model has ", name_of(place.dtype),
                              " ", shown(place.shape), ")"));
    }
  }
  for (const auto& [name, tensor] : weights.tensors()) {
    if (!model.contains(name)) unexpected.push_back(name);
  }
  if (!missing.empty() || !unexpected.empty() || !different.empty()) {
    throw CheckpointError(
        cat(source, " does not fit the model.", line("missing in the file", missing),
            line("not in the model", unexpected), line("of another shape or dtype", different),
            "\nName the model that the weights were saved from."));
  }
  for (const auto& [name, place] : model) {
    const auto& bytes = weights.tensors().at(name).bytes;
    std::ranges::copy(bytes, place.bytes.begin());
  }
}

}  // namespace yoke::checkpoint
