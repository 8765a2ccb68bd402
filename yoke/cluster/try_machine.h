#pragma once

#include <string>

#include "yoke/cluster/machine_facts.h"

/// Trials of what training needs. None leaves anything, and none throws: what fails is the answer.
namespace yoke::cluster {

/// Makes shared memory as workers do. Empty when that works.
std::string try_memfd();

/// One child makes shared memory, another opens it through /proc/PID/fd, as workers do.
std::string try_memory_of_a_peer();

/// A connection to itself over 127.0.0.1; the interface of the default route.
MachineFacts::Network try_network();

/// Compares the clocks for 0.1 s, and asks the kernel whether NTP disciplines them.
MachineFacts::Clocks watch_clocks();

/// Writes 16 MiB to a file without a name in the current folder, with fsync.
MachineFacts::Disk try_disk();

}  // namespace yoke::cluster
