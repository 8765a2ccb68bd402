#include "yoke/tensor/worker_setup.h"

#include <ATen/Parallel.h>
#include <malloc.h>

#include "yoke/base/text.h"

namespace yoke::tensor {

std::string set_up_worker(std::int64_t threads) {
  constexpr int kKeep = 1 << 30;
  const bool kept = mallopt(M_MMAP_THRESHOLD, kKeep) == 1 &&
                    mallopt(M_TRIM_THRESHOLD, kKeep) == 1 && mallopt(M_TOP_PAD, 64 << 20) == 1;
  at::set_num_threads(static_cast<int>(threads));
  return cat(threads, threads == 1 ? " thread" : " threads", " a worker, allocator ",
             kept ? "glibc malloc that keeps freed memory" : "as the system has it");
}

}  // namespace yoke::tensor
