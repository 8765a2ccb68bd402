#pragma once

#include <vector>

#include "yoke/cluster/findings.h"

namespace yoke::cli {

/// Starts `ranks` processes that all-reduce with each other, over shared memory and then over TCP:
/// for each a finding that says how long it took, and whether the sum was right. Bounded: after a
/// minute what still runs is killed. Call it while there is one thread: it forks.
std::vector<cluster::Finding> try_ranks(int ranks);

}  // namespace yoke::cli
