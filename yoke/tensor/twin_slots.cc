#include "yoke/tensor/twin_slots.h"

#include <cstring>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"

namespace yoke::tensor {

/// Before its payload. The checksum covers the payload and the two numbers.
struct TwinSlots::Slot {
  std::uint64_t serial;  ///< 0: never written
  std::int64_t step;
  std::uint64_t bytes;
  std::uint64_t checksum;

  std::byte* payload() { return reinterpret_cast<std::byte*>(this + 1); }
  const std::byte* payload() const { return reinterpret_cast<const std::byte*>(this + 1); }
  std::uint64_t sum() const {
    const std::uint64_t numbers[] = {serial, static_cast<std::uint64_t>(step), bytes};
    return xxh3(std::as_bytes(std::span(numbers))) ^ xxh3(std::span(payload(), bytes));
  }
};

std::size_t TwinSlots::bytes_needed(std::size_t most) {
  return 2 * (sizeof(Slot) + (most + 63) / 64 * 64);
}

std::size_t TwinSlots::room() const {
  return memory_.size() / 2 - sizeof(Slot);
}

TwinSlots::Slot& TwinSlots::slot(int index) const {
  return *reinterpret_cast<Slot*>(memory_.data() +
                                  static_cast<std::size_t>(index) * (memory_.size() / 2));
}

bool TwinSlots::is_whole(const Slot& slot) const {
  return slot.serial != 0 && slot.bytes <= room() && slot.checksum == slot.sum();
}

void TwinSlots::write(std::int64_t step, std::span<const std::byte> payload) {
  YOKE_ENSURE(payload.size() <= room(), payload.size(), " bytes in a slot of ", room());
  const bool first_is_newer = is_whole(slot(0)) && slot(0).serial > slot(1).serial;
  const bool keep_first = first_is_newer || (is_whole(slot(0)) && !is_whole(slot(1)));
  const std::uint64_t serial = slot(keep_first ? 0 : 1).serial + 1;
  Slot& older = slot(keep_first ? 1 : 0);
  older.checksum = ~older.checksum;
  older.serial = serial;
  older.step = step;
  older.bytes = payload.size();
  std::memcpy(older.payload(), payload.data(), payload.size());
  older.checksum = older.sum();
}

std::optional<std::vector<std::byte>> TwinSlots::read(std::int64_t step) const {
  const Slot* found = nullptr;
  for (int index = 0; index < 2; ++index) {
    const Slot& candidate = slot(index);
    if (!is_whole(candidate) || candidate.step != step) continue;
    if (found == nullptr || candidate.serial > found->serial) found = &candidate;
  }
  if (found == nullptr) return std::nullopt;
  return std::vector(found->payload(), found->payload() + found->bytes);
}

}  // namespace yoke::tensor
