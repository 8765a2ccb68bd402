#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "yoke/comm/communicator.h"

namespace yoke::comm {

/// One way of doing a collective, of several that are measured side by side.
struct Contender {
  std::string name;
  /// The collective, once, on every rank.
  std::function<void()> run;
  /// This rank's buffer: written anew before each timed run of a large one, since data that lies in
  /// the cache from the run before would flatter. Holds float32.
  std::span<std::byte> data;
};

struct MeasureOptions {
  int rounds = 7;   ///< contenders take turns, a round each
  int samples = 5;  ///< in a round
  /// Below this, runs follow each other in a loop of about 1 ms, and the buffer is not rewritten.
  std::size_t large = std::size_t{64} << 10;
};

/// Of one contender, in seconds; a run takes as long as on the slowest rank.
struct Measured {
  double median = 0;  ///< of the medians of the rounds
  double best = 0;    ///< sample of all: what other work on the machine did not disturb
};

/// Collective: every rank brings the same contenders in the same order. `comm` keeps the ranks in
/// step and agrees on the times; it may be a contender's too.
std::vector<Measured> measure(Communicator& comm, std::span<const Contender> contenders,
                              const MeasureOptions& options = {});

/// The middle one; the mean of the two middle ones of an even number.
double median_of(std::vector<double> values);

}  // namespace yoke::comm
