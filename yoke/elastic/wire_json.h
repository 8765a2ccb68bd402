#pragma once

#include <nlohmann/json_fwd.hpp>

#include "yoke/elastic/roster.h"

/// How the structures of membership travel. The readers throw nlohmann::json::exception for what
/// cannot be one.
namespace yoke::elastic {

nlohmann::json to_json(const Change& change);
Change change_from(const nlohmann::json& object);

nlohmann::json to_json(const Beat& beat);
Beat beat_from(const nlohmann::json& object);

}  // namespace yoke::elastic
