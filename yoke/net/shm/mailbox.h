#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace yoke::net {

/// A ring of bytes from one rank to another, in shared memory; zeroed memory is an empty one. One
/// writer and one reader; neither waits: they move what fits and say how much that was.
class Mailbox {
 public:
  static constexpr std::size_t kBytes = std::size_t{64} << 10;

  /// Called by the writer. Returns how many bytes were taken, from the front of `bytes`.
  std::size_t write(std::span<const std::byte> bytes);
  /// Called by the reader. Returns how many bytes of `bytes` were filled.
  std::size_t read(std::span<std::byte> bytes);
  /// Bytes that can be read now.
  std::size_t available() const;
  /// Bytes that can be written now.
  std::size_t room() const;

 private:
  alignas(64) std::atomic<std::uint64_t> written_;
  alignas(64) std::atomic<std::uint64_t> read_;
  alignas(64) std::byte ring_[kBytes];
};

}  // namespace yoke::net
