#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace yoke::tensor {

/// The small part of a state, beside its arena in memory that outlives its writer: two slots that
/// are written in turn, so that one is whole at every moment. One process writes at a time.
class TwinSlots {
 public:
  /// Bytes for payloads of up to `most` bytes.
  static std::size_t bytes_needed(std::size_t most);
  /// `memory` is zero at first, and aligned to 8 bytes.
  explicit TwinSlots(std::span<std::byte> memory) : memory_(memory) {}

  /// Overwrites the older slot. Throws InternalError for a payload that is too large.
  void write(std::int64_t step, std::span<const std::byte> payload);
  /// The newest whole payload of that step.
  std::optional<std::vector<std::byte>> read(std::int64_t step) const;

 private:
  struct Slot;
  Slot& slot(int index) const;
  std::size_t room() const;
  bool is_whole(const Slot& slot) const;

  std::span<std::byte> memory_;
};

}  // namespace yoke::tensor
