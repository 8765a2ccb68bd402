// One direction of the fault proxy, with times that the test makes up: by closed form.

#include "tests/support/faulty_path.h"

#include <gtest/gtest.h>

#include <numeric>

namespace yoke::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSegment = FaultyPath::kSegmentBytes;
const Clock::time_point kStart{1h};

std::vector<std::byte> counting(std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(i * 7 + i / 251);
  return out;
}

struct Arrival {
  std::vector<std::byte> bytes;
  std::vector<Clock::time_point> times;  ///< of each byte
};

/// Everything that comes out, at the first moment at which it may.
Arrival all_of(FaultyPath& path) {
  Arrival arrival;
  while (auto at = path.due_at()) {
    EXPECT_TRUE(*at == kStart || path.due(*at - 1ns).empty());
    const auto due = path.due(*at);
    if (due.empty()) break;
    arrival.bytes.insert(arrival.bytes.end(), due.begin(), due.end());
    arrival.times.insert(arrival.times.end(), due.size(), *at);
    path.passed_on(due.size());
  }
  return arrival;
}

/// The whole stream, handed over in pieces of `piece` bytes, all at kStart.
Arrival through(const PathFaults& faults, std::uint64_t seed, std::size_t bytes,
                std::size_t piece = 1000) {
  FaultyPath path{RandomKey(seed)};
  path.set(faults);
  const auto sent = counting(bytes);
  for (std::size_t at = 0; at < bytes; at += piece) {
    path.take(std::span(sent).subspan(at, std::min(piece, bytes - at)), kStart);
  }
  return all_of(path);
}

TEST(FaultyPath, WithoutFaultsEverythingComesAtOnceAndUnchanged) {
  const auto got = through({}, 1, 100'000);
  EXPECT_EQ(got.bytes, counting(100'000));
  EXPECT_EQ(got.times.back(), kStart);
}

TEST(FaultyPath, DelayHoldsEveryByteForThatLong) {
  const auto got = through({.delay = 30ms}, 1, 10'000);
  EXPECT_EQ(got.bytes, counting(10'000));
  for (const auto time : got.times) ASSERT_EQ(time, kStart + 30ms);
}

TEST(FaultyPath, JitterIsWithinItsBoundsAndKeepsTheOrder) {
  const std::size_t segments = 500;
  const auto got = through({.delay = 10ms, .jitter = 20ms}, 7, segments * kSegment);
  EXPECT_EQ(got.bytes, counting(segments * kSegment));
  EXPECT_TRUE(std::is_sorted(got.times.begin(), got.times.end()));
  EXPECT_GE(got.times.front(), kStart + 10ms);
  EXPECT_LT(got.times.back(), kStart + 30ms);
  // The latest of 500 draws is near the end, and holds back all that comes after.
  EXPECT_GT(got.times.back(), kStart + 29ms);
}

TEST(FaultyPath, BandwidthIsATokenBucket) {
  const double rate = 1e6;
  for (const std::size_t bytes : {std::size_t{1000}, std::size_t{4096}, std::size_t{1'000'000}}) {
    const auto got = through({.bytes_per_second = rate}, 1, bytes);
    EXPECT_EQ(got.bytes, counting(bytes));
    const double over = static_cast<double>(bytes) - FaultyPath::kBucketBytes;
    EXPECT_NEAR(Seconds(got.times.back() - kStart).count(), std::max(0.0, over / rate), 1e-5);
    // At no time more than the bucket and what has flowed into it since.
    for (std::size_t i = 0; i < bytes; i += 97) {
      const double may =
          FaultyPath::kBucketBytes + rate * Seconds(got.times[i] - kStart).count() + 1;
      ASSERT_LE(static_cast<double>(i), may);
    }
  }
}

TEST(FaultyPath, TheBucketIsFullAgainAfterAPause) {
  FaultyPath path{RandomKey(1)};
  path.set({.bytes_per_second = 1e6});
  const auto sent = counting(3 * FaultyPath::kBucketBytes);
  path.take(std::span(sent).first(2 * FaultyPath::kBucketBytes), kStart);
  path.take(std::span(sent).subspan(2 * FaultyPath::kBucketBytes), kStart + 1s);
  const auto got = all_of(path);
  EXPECT_NEAR(Seconds(got.times[2 * FaultyPath::kBucketBytes - 1] - kStart).count(), 0.004096,
              1e-6);
  EXPECT_EQ(got.times.back(), kStart + 1s);
}

TEST(FaultyPath, LossIsAPauseOfAboutThatShareOfSegments) {
  const std::size_t segments = 2000;
  FaultyPath path{RandomKey(3)};
  path.set({.loss = 0.1, .loss_pause = 200ms});
  const auto sent = counting(segments * kSegment);
  std::size_t late = 0;
  for (std::size_t segment = 0; segment < segments; ++segment) {
    // A second apart, so that a pause holds nothing else back.
    const auto now = kStart + segment * 1s;
    path.take(std::span(sent).subspan(segment * kSegment, kSegment), now);
    const auto got = all_of(path);
    ASSERT_TRUE(got.times.back() == now || got.times.back() == now + 200ms);
    late += got.times.back() == now ? 0 : 1;
  }
  EXPECT_NEAR(static_cast<double>(late), 200, 5 * 13.4);  // five standard deviations
}

TEST(FaultyPath, ChanceDoesNotDependOnThePieces) {
  const PathFaults faults{
      .delay = 1ms, .jitter = 5ms, .loss = 0.2, .loss_pause = 50ms, .flip_one_in = 100};
  const auto one = through(faults, 9, 50'000, 50'000);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{999}, kSegment}) {
    const auto other = through(faults, 9, 50'000, piece);
    EXPECT_EQ(other.bytes, one.bytes) << piece;
    EXPECT_EQ(other.times, one.times) << piece;
  }
  EXPECT_NE(through(faults, 10, 50'000).bytes, one.bytes);
}

TEST(FaultyPath, FlipsOneBitOfOneByteInSoMany) {
  FaultyPath path{RandomKey(4)};
  path.set({.flip_one_in = 500});
  const auto sent = counting(1'000'000);
  path.take(sent, kStart);
  const auto got = all_of(path).bytes;
  std::vector<std::uint64_t> changed;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (got[i] == sent[i]) continue;
    changed.push_back(i);
    EXPECT_EQ(std::popcount(static_cast<unsigned>(got[i] ^ sent[i])), 1);
  }
  EXPECT_EQ(changed, path.flipped());
  // 2,000 gaps, uniform in 1 .. 999: a standard deviation of 288 each.
  EXPECT_NEAR(static_cast<double>(changed.size()), 2000, 5 * 288.0 / 500 * 45);
}

TEST(FaultyPath, FlipNextChangesExactlyTheNextByte) {
  FaultyPath path{RandomKey(4)};
  const auto sent = counting(300);
  path.take(std::span(sent).first(100), kStart);
  path.flip_next();
  path.take(std::span(sent).subspan(100), kStart);
  auto expected = sent;
  expected[100] ^= std::byte{1};
  EXPECT_EQ(all_of(path).bytes, expected);
  EXPECT_EQ(path.flipped(), std::vector<std::uint64_t>{100});
}

TEST(FaultyPath, AResetComesAfterExactlySoManyBytes) {
  FaultyPath path{RandomKey(4)};
  path.set({.reset_after = 2345});
  const auto sent = counting(10'000);
  path.take(sent, kStart);
  EXPECT_FALSE(path.wants_reset());
  const auto got = all_of(path).bytes;
  EXPECT_EQ(got, counting(2345));
  EXPECT_TRUE(path.wants_reset());
  EXPECT_FALSE(path.takes_more());
}

TEST(FaultyPath, ACutSwallowsWhatComesAndWhatIsOnItsWay) {
  FaultyPath path{RandomKey(4)};
  path.set({.delay = 10ms});
  const auto sent = counting(300);
  path.take(std::span(sent).first(100), kStart);
  path.set({.cut = true});
  path.take(std::span(sent).subspan(100, 50), kStart);
  EXPECT_TRUE(path.takes_more());
  EXPECT_EQ(path.due_at(), std::nullopt);
  path.set({});
  path.take(std::span(sent).subspan(150), kStart);
  const auto got = all_of(path).bytes;
  EXPECT_TRUE(std::equal(got.begin(), got.end(), sent.begin() + 150, sent.end()));
  EXPECT_EQ(path.swallowed(), 150u);
  EXPECT_EQ(path.passed(), 150u);
}

TEST(FaultyPath, TheEndComesAfterTheBytesAndIsSwallowedByACut) {
  FaultyPath path{RandomKey(4)};
  path.set({.delay = 10ms});
  path.take(counting(10), kStart);
  path.take_end();
  EXPECT_FALSE(path.end_is_due());
  all_of(path);
  EXPECT_TRUE(path.end_is_due());
  FaultyPath cut{RandomKey(4)};
  cut.set({.cut = true});
  cut.take_end();
  cut.set({});
  EXPECT_FALSE(cut.end_is_due());
}

TEST(FaultyPath, StoppedItTakesNothingAndPassesNothingOn) {
  FaultyPath path{RandomKey(4)};
  path.take(counting(10), kStart);
  path.set({.stopped = true});
  EXPECT_FALSE(path.takes_more());
  EXPECT_TRUE(path.due(kStart + 1h).empty());
  EXPECT_EQ(path.due_at(), std::nullopt);
  path.set({});
  EXPECT_EQ(all_of(path).bytes, counting(10));
}

}  // namespace
}  // namespace yoke::test
