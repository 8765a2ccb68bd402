#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "yoke/comm/communicator.h"
#include "yoke/net/shm/region.h"

namespace yoke::comm {

/// One share(): a region cut into a section for each rank, at page boundaries.
class RegionSections final : public SharedSections {
 public:
  static std::size_t region_bytes(int ranks, std::size_t bytes_per_rank);
  RegionSections(std::shared_ptr<net::SharedRegion> region, std::size_t bytes_per_rank)
      : region_(std::move(region)), bytes_per_rank_(bytes_per_rank) {}
  std::span<std::byte> of(int rank) override;

 private:
  const std::shared_ptr<net::SharedRegion> region_;
  const std::size_t bytes_per_rank_;
};

/// The sections that are in use, numbered alike on all ranks.
class SectionTable {
 public:
  struct Location {
    std::shared_ptr<SharedSections> sections;
    std::size_t offset;
    std::uint64_t id;  ///< number and offset in one word, never 0
  };

  std::size_t next() const { return sections_.size(); }
  void add(const std::shared_ptr<SharedSections>& sections) { sections_.push_back(sections); }
  /// Where `data` lies, if it is inside a section of `rank`.
  std::optional<Location> find(int rank, std::span<const std::byte> data) const;

 private:
  std::vector<std::weak_ptr<SharedSections>> sections_;
};

}  // namespace yoke::comm
