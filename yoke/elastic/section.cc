#include "yoke/elastic/section.h"

namespace yoke::elastic {

namespace {
constexpr std::array<std::string_view, kSections> kNames = {
    "start", "data", "compute", "communicate", "checkpoint", "evaluate", "wait"};
}  // namespace

std::string_view name_of(Section section) {
  return kNames[static_cast<std::size_t>(section)];
}

std::optional<Section> section_from(std::string_view name) {
  for (std::size_t i = 0; i < kSections; ++i) {
    if (kNames[i] == name) return static_cast<Section>(i);
  }
  return std::nullopt;
}

}  // namespace yoke::elastic
