#include "yoke/elastic/wire_json.h"

#include <nlohmann/json.hpp>

namespace yoke::elastic {

using nlohmann::json;

namespace {
std::int64_t microseconds_of(Clock::duration span) {
  return std::chrono::duration_cast<std::chrono::microseconds>(span).count();
}
}  // namespace

json to_json(const Change& change) {
  return {{"cause", change.cause},
          {"rank", change.rank},
          {"detail", change.detail},
          {"detect_ms", change.detect_ms}};
}

Change change_from(const json& object) {
  return {.cause = object.at("cause"),
          .rank = object.at("rank"),
          .detail = object.at("detail"),
          .detect_ms = object.at("detect_ms")};
}

json to_json(const Beat& beat) {
  json longest = json::object();
  for (std::size_t i = 0; i < kSections; ++i) {
    if (beat.longest[i] > Clock::duration::zero())
      longest[std::string(name_of(static_cast<Section>(i)))] = microseconds_of(beat.longest[i]);
  }
  return {{"say", "beat"},
          {"generation", beat.generation},
          {"step", beat.step},
          {"section", name_of(beat.section)},
          {"in_section_us", microseconds_of(beat.in_section)},
          {"longest_us", longest}};
}

Beat beat_from(const json& object) {
  Beat beat;
  beat.generation = object.at("generation");
  beat.step = object.at("step");
  beat.section = section_from(object.at("section").get<std::string>()).value_or(Section::kStart);
  beat.in_section = std::chrono::microseconds(object.at("in_section_us").get<std::int64_t>());
  for (const auto& [name, span] : object.at("longest_us").items()) {
    if (const auto section = section_from(name))
      beat.longest[static_cast<std::size_t>(*section)] =
          std::chrono::microseconds(span.get<std::int64_t>());
  }
  return beat;
}

}  // namespace yoke::elastic
