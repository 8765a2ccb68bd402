#include "yoke/comm/shm/sections.h"

#include <unistd.h>

#include <functional>

namespace yoke::comm {
namespace {

std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

std::size_t RegionSections::region_bytes(int ranks, std::size_t bytes_per_rank) {
  return ranks * whole_pages(bytes_per_rank);
}

std::span<std::byte> RegionSections::of(int rank) {
  return region_->bytes().subspan(rank * whole_pages(bytes_per_rank_), bytes_per_rank_);
}

std::optional<SectionTable::Location> SectionTable::find(int rank,
                                                         std::span<const std::byte> data) const {
  // Pointers into different objects have an order only through std::less.
  const std::less_equal<const std::byte*> not_after;
  for (std::size_t number = 0; number < sections_.size(); ++number) {
    auto sections = sections_[number].lock();
    if (!sections) continue;
    const auto section = sections->of(rank);
    if (!not_after(section.data(), data.data()) ||
        !not_after(data.data() + data.size(), section.data() + section.size())) {
      continue;
    }
    const auto offset = static_cast<std::size_t>(data.data() - section.data());
    return Location{std::move(sections), offset, (number + 1) << 48 | offset};
  }
  return std::nullopt;
}

}  // namespace yoke::comm
