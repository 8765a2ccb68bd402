#include "yoke/checkpoint/manifest.h"

#include "yoke/base/error.h"
#include "yoke/base/hash.h"

namespace yoke::checkpoint {

namespace {
constexpr const char* kSeal = "manifest_sha256";

std::string hash_of(const nlohmann::json& manifest) {
  const std::string text = manifest.dump();
  return sha256_hex(std::as_bytes(std::span(text)));
}
}  // namespace

std::string seal(nlohmann::json manifest) {
  manifest.erase(kSeal);
  const std::string hash = hash_of(manifest);
  manifest[kSeal] = hash;
  return manifest.dump(1) + "\n";
}

nlohmann::json unseal(const std::string& text, const std::string& where) {
  nlohmann::json manifest = nlohmann::json::parse(text, nullptr, false);
  if (!manifest.is_object() || !manifest.contains(kSeal) || !manifest[kSeal].is_string()) {
    throw CheckpointError(cat(where, " is not a manifest of a checkpoint."));
  }
  const std::string hash = manifest[kSeal];
  manifest.erase(kSeal);
  if (hash_of(manifest) != hash)
    throw CheckpointError(cat(where, " does not have its own checksum: it was damaged or edited."));
  if (manifest.value("schema", 0) != kManifestSchema) {
    throw CheckpointError(cat(where, " has schema ", manifest.value("schema", 0),
                              "; this yoke reads ", kManifestSchema, "."));
  }
  return manifest;
}

}  // namespace yoke::checkpoint
