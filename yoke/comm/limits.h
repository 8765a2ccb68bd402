#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "yoke/comm/communicator.h"

/// What this machine allows, so that a measured collective can be given as a ratio. Between ranks
/// that share memory.
namespace yoke::comm {

/// The memory traffic of an all-reduce of float32 and nothing else: each rank reads its share of
/// all sections and writes the sum to all; no flag, no check. 2 P n bytes of traffic for P ranks
/// and n bytes.
///
/// kPlain stores through the caches, kStreaming around them (x86; elsewhere the same as kPlain).
/// Take the faster.
enum class Stores { kPlain, kStreaming };
void memory_bound_pass(SharedSections& sections, int rank, int ranks, std::size_t bytes,
                       Stores stores);

/// A cache line that goes to the other rank and back. Ranks 0 and 1 take part, each in its own
/// section's first line; returns seconds for one round trip (0 on other ranks). Both must call it,
/// with sections that are zero there; gives up the processor now and then, so it ends also where
/// ranks share a core.
double cache_line_round_trip(SharedSections& sections, int rank, int trips);

}  // namespace yoke::comm
