#include "tests/support/faulty_path.h"

#include <algorithm>

namespace yoke::test {
namespace {

Clock::duration seconds(double value) {
  return std::chrono::duration_cast<Clock::duration>(Seconds(value));
}

}  // namespace

void FaultyPath::set(const PathFaults& faults) {
  const bool other_flips = faults.flip_one_in != faults_.flip_one_in;
  faults_ = faults;
  if (other_flips && faults_.flip_one_in > 0) {
    flips_found_ = 0;
    next_flip_ = 0;
    find_next_flip();
  }
  if (faults_.cut) {
    swallowed_ += on_its_way_;
    on_its_way_ = 0;
    pieces_.clear();
    end_lost_ |= end_taken_;
  }
}

/// Gaps are uniform in [1, 2 n - 1]: n on average, and the k-th depends on the key and k alone.
void FaultyPath::find_next_flip() {
  const std::uint64_t width = 2 * faults_.flip_one_in - 1;
  const auto gap = [&] { return 1 + key_.with("flip").bits(flips_found_++) % width; };
  next_flip_ = flips_found_ == 0 ? gap() - 1 : next_flip_ + gap();
}

void FaultyPath::take(std::span<const std::byte> bytes, Clock::time_point now) {
  if (faults_.cut) {
    swallowed_ += bytes.size();
    taken_ += bytes.size();
    return;
  }
  while (!bytes.empty()) {
    const std::size_t to_its_end = kSegmentBytes - taken_ % kSegmentBytes;
    const auto part = bytes.first(std::min(bytes.size(), to_its_end));
    Piece piece{.bytes = {part.begin(), part.end()}, .due = due_time(part.size(), now)};
    damage(piece.bytes);
    pieces_.push_back(std::move(piece));
    on_its_way_ += part.size();
    taken_ += part.size();
    bytes = bytes.subspan(part.size());
  }
}

Clock::time_point FaultyPath::due_time(std::size_t bytes, Clock::time_point now) {
  const std::uint64_t segment = taken_ / kSegmentBytes;
  auto due = now + faults_.delay;
  if (faults_.jitter > Clock::duration::zero()) {
    due += seconds(Seconds(faults_.jitter).count() * key_.with("jitter").uniform(segment));
  }
  const bool begins = taken_ % kSegmentBytes == 0;
  if (begins && faults_.loss > 0 && key_.with("loss").uniform(segment) < faults_.loss) {
    due += faults_.loss_pause;
  }
  due = std::max(due, last_due_);
  if (faults_.bytes_per_second > 0) {
    // The bucket, as the time at which it would be full again: it holds enough for these bytes as
    // soon as taking them would not put that time further off than a whole bucket takes.
    const auto cost = seconds(static_cast<double>(bytes) / faults_.bytes_per_second);
    const auto whole = seconds(kBucketBytes / faults_.bytes_per_second);
    due = std::max(due, bucket_full_at_ + cost - whole);
    bucket_full_at_ = std::max(bucket_full_at_, due) + cost;
  }
  return last_due_ = due;
}

void FaultyPath::damage(std::span<std::byte> bytes) {
  if (flip_next_ && !bytes.empty()) {
    flip_next_ = false;
    bytes[0] ^= std::byte{1};
    flipped_.push_back(taken_);
  }
  while (faults_.flip_one_in > 0 && next_flip_ < taken_ + bytes.size()) {
    if (next_flip_ >= taken_) {
      const auto bit = key_.with("bit").bits(next_flip_) % 8;
      bytes[next_flip_ - taken_] ^= std::byte{1} << static_cast<int>(bit);
      flipped_.push_back(next_flip_);
    }
    find_next_flip();
  }
}

void FaultyPath::take_end() {
  end_taken_ = true;
  end_lost_ |= faults_.cut;
}

std::span<const std::byte> FaultyPath::due(Clock::time_point now) const {
  if (faults_.stopped || pieces_.empty() || pieces_.front().due > now || wants_reset()) return {};
  const Piece& piece = pieces_.front();
  auto rest = std::span(piece.bytes).subspan(piece.sent);
  if (faults_.reset_after) {
    rest = rest.first(std::min<std::uint64_t>(rest.size(), *faults_.reset_after - passed_));
  }
  return rest;
}

void FaultyPath::passed_on(std::size_t bytes) {
  Piece& piece = pieces_.front();
  piece.sent += bytes;
  passed_ += bytes;
  on_its_way_ -= bytes;
  if (piece.sent == piece.bytes.size()) pieces_.pop_front();
}

std::optional<Clock::time_point> FaultyPath::due_at() const {
  if (faults_.stopped || pieces_.empty()) return std::nullopt;
  return pieces_.front().due;
}

}  // namespace yoke::test
