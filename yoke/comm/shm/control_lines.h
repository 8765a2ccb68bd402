#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "yoke/net/shm/group.h"
#include "yoke/net/transport.h"

namespace yoke::comm {

/// The step that all ranks take together: each writes its cache line and looks at everyone else's.
///
/// Phases are counted from 1. In phase k a rank writes line k mod 2 of its own (call, a detail, up
/// to 24 bytes of payload), then the number k behind it, and waits until it sees k on all others.
/// So whatever a rank wrote anywhere before its phase k may be read by all after theirs; and what
/// is read between phases k and k + 1 may be overwritten after phase k + 1: memory that is used in
/// turn by odd and even phases never needs a lock.
///
/// Cost of a phase for 2 ranks: two cache-line transfers at once, one each way.
class ControlLines {
 public:
  static constexpr std::size_t kInlineBytes = 24;

  /// Bytes of shared memory for the lines of `ranks` ranks; zero at first.
  static std::size_t region_bytes(int ranks);
  ControlLines(std::shared_ptr<net::ShmGroup> group, std::byte* region);

  /// The number of the next phase.
  std::uint32_t next() const { return phase_ + 1; }

  /// A phase that begins a call. Compares the calls of all ranks: CollectiveMismatch names the rank
  /// that differs from most (with two ranks: from rank 0), the same on all ranks. `payload` is at
  /// most kInlineBytes.
  void begin(const net::CallTag& tag, std::uint64_t detail, std::span<const std::byte> payload,
             Deadline deadline);
  /// A later phase of that call.
  void advance(Deadline deadline);

  /// What ranks said when the call began; until the next phase.
  std::uint64_t detail(int rank) const { return line(rank, phase_).detail; }
  const std::byte* payload(int rank) const { return line(rank, phase_).payload; }

 private:
  struct alignas(64) Line {
    net::Signal signal;
    net::CallTag tag;
    std::uint64_t detail;
    std::byte payload[kInlineBytes];
  };
  static_assert(sizeof(Line) == 64);
  /// Two lines apart: the prefetcher of the processor fetches lines in pairs.
  struct alignas(128) Padded {
    Line line;
  };

  Line& line(int rank, std::uint32_t phase) const { return lines_[2 * rank + phase % 2].line; }
  void await(Deadline deadline);
  [[noreturn]] void mismatch();

  const std::shared_ptr<net::ShmGroup> group_;
  Padded* const lines_;
  std::uint32_t phase_ = 0;
  net::CallTag tag_;
};

}  // namespace yoke::comm
