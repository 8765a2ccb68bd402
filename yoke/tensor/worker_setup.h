#pragma once

#include <cstdint>
#include <string>

namespace yoke::tensor {

/// Sets up this process for one worker: libtorch's threads (`threads` inside an operation, one
/// between operations), and glibc's allocator, told to keep freed memory instead of giving it back
/// to the kernel after each operation (a CNN step takes 0.87 of its time with that). Call it once,
/// before the first tensor. Returns what was set, for the log. Threads of one process share the
/// setting.
std::string set_up_worker(std::int64_t threads);

}  // namespace yoke::tensor
