#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/random.h"

namespace yoke::test {

/// What may happen to the bytes of one direction of a connection. As made: nothing.
struct PathFaults {
  Clock::duration delay{};   ///< of every byte
  Clock::duration jitter{};  ///< further delay of a segment, uniform in [0, jitter), seeded
  /// A token bucket of kBucketBytes that refills at this rate: N bytes that come at once take
  /// (N - kBucketBytes) / rate. 0: unlimited.
  double bytes_per_second = 0;
  /// Share of segments that are "lost". TCP repairs a loss, so that what its user sees of one is a
  /// pause: the segment, and all that comes after it, is `loss_pause` late, as after a
  /// retransmission time-out (200 ms at least on Linux). Seeded.
  double loss = 0;
  Clock::duration loss_pause = std::chrono::milliseconds(200);
  /// One bit of one byte in about so many is flipped; which ones, the seed says. 0: none.
  std::uint64_t flip_one_in = 0;
  /// After so many bytes of the direction have been passed on, counted from the connection's first,
  /// both ends are reset.
  std::optional<std::uint64_t> reset_after{};
  /// A cable cut in one direction: bytes, and the end, are swallowed; nobody is told. What was
  /// swallowed does not come back (TCP would send it again).
  bool cut = false;
  /// Nothing is taken, and nothing passed on, until this is false again: the sender's window fills.
  bool stopped = false;
};

/// One direction of one connection: takes bytes and says when which of them are due. Knows no
/// sockets and no clock: a pure function of the key, the settings and the times it is told. Order
/// is kept. What is random belongs to a position in the stream (or a segment, kSegmentBytes
/// positions from a multiple of it on), not to the pieces in which the bytes happen to come.
class FaultyPath {
 public:
  static constexpr std::size_t kSegmentBytes = 1448;
  static constexpr std::size_t kBucketBytes = 4096;
  /// No more is taken while so much is on its way.
  static constexpr std::size_t kMostOnItsWay = 4 << 20;

  explicit FaultyPath(const RandomKey& key) : key_(key) {}

  /// Concerns bytes that are taken from now on; cut also those on their way.
  void set(const PathFaults& faults);
  const PathFaults& faults() const { return faults_; }
  /// The lowest bit of the next byte that is taken is flipped.
  void flip_next() { flip_next_ = true; }

  bool takes_more() const {
    return !faults_.stopped && !end_taken_ && on_its_way_ < kMostOnItsWay && !wants_reset();
  }
  void take(std::span<const std::byte> bytes, Clock::time_point now);
  /// The sender has ended.
  void take_end();

  /// Bytes to pass on now; empty when none are due.
  std::span<const std::byte> due(Clock::time_point now) const;
  void passed_on(std::size_t bytes);
  /// When the next bytes are due; nothing while there are none, or the direction is stopped.
  std::optional<Clock::time_point> due_at() const;
  /// All bytes before the end were passed on, and the end was not swallowed.
  bool end_is_due() const { return end_taken_ && !end_lost_ && pieces_.empty(); }
  /// `reset_after` bytes have been passed on.
  bool wants_reset() const { return faults_.reset_after && passed_ >= *faults_.reset_after; }

  std::uint64_t passed() const { return passed_; }
  std::uint64_t swallowed() const { return swallowed_; }
  /// Positions of the bytes that were changed.
  const std::vector<std::uint64_t>& flipped() const { return flipped_; }

 private:
  struct Piece {
    std::vector<std::byte> bytes;
    std::size_t sent = 0;
    Clock::time_point due;
  };

  void damage(std::span<std::byte> bytes);
  Clock::time_point due_time(std::size_t bytes, Clock::time_point now);
  void find_next_flip();

  const RandomKey key_;
  PathFaults faults_;
  std::deque<Piece> pieces_;
  std::size_t on_its_way_ = 0;
  std::uint64_t taken_ = 0, passed_ = 0, swallowed_ = 0;
  Clock::time_point last_due_{};
  Clock::time_point bucket_full_at_{};
  bool end_taken_ = false, end_lost_ = false, flip_next_ = false;
  std::vector<std::uint64_t> flipped_;
  std::uint64_t flips_found_ = 0;  ///< how many positions of flips lie before next_flip_
  std::uint64_t next_flip_ = 0;    ///< valid when flip_one_in > 0
};

}  // namespace yoke::test
