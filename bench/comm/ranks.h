#pragma once

#include <functional>

#include "yoke/net/world.h"

namespace yoke::bench {

/// Runs `body` as `size` processes forked from this one, and waits for them. Returns 0, or the exit
/// code of the first rank that failed. Call it before this process has a second thread.
int run_ranks(int size, const std::function<int(const World&)>& body);

/// "2 x AMD EPYC (one thread a core), 23 GiB, Linux 6.1": for the head of a table.
std::string machine();

}  // namespace yoke::bench
