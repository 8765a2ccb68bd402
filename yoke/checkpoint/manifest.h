#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace yoke::checkpoint {

inline constexpr int kManifestSchema = 1;
inline constexpr const char* kManifestName = "MANIFEST.json";

/// The manifest with its own SHA-256 ("manifest_sha256", over the rest) put in, as text.
std::string seal(nlohmann::json manifest);
/// The inverse. Throws CheckpointError: not JSON, a hash that does not fit, another schema.
nlohmann::json unseal(const std::string& text, const std::string& where);

}  // namespace yoke::checkpoint
