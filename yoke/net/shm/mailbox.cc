#include "yoke/net/shm/mailbox.h"

#include <algorithm>
#include <cstring>

namespace yoke::net {

std::size_t Mailbox::available() const {
  return written_.load(std::memory_order_acquire) - read_.load(std::memory_order_relaxed);
}

std::size_t Mailbox::room() const {
  return kBytes -
         (written_.load(std::memory_order_relaxed) - read_.load(std::memory_order_acquire));
}

std::size_t Mailbox::write(std::span<const std::byte> bytes) {
  const std::size_t count = std::min(bytes.size(), room());
  if (count == 0) return 0;
  const std::uint64_t written = written_.load(std::memory_order_relaxed);
  const std::size_t at = written % kBytes;
  const std::size_t first = std::min(count, kBytes - at);
  std::memcpy(ring_ + at, bytes.data(), first);
  std::memcpy(ring_, bytes.data() + first, count - first);
  written_.store(written + count, std::memory_order_release);
  return count;
}

std::size_t Mailbox::read(std::span<std::byte> bytes) {
  const std::size_t count = std::min(bytes.size(), available());
  if (count == 0) return 0;
  const std::uint64_t read = read_.load(std::memory_order_relaxed);
  const std::size_t at = read % kBytes;
  const std::size_t first = std::min(count, kBytes - at);
  std::memcpy(bytes.data(), ring_ + at, first);
  std::memcpy(bytes.data() + first, ring_, count - first);
  read_.store(read + count, std::memory_order_release);
  return count;
}

}  // namespace yoke::net
