#pragma once

#include "yoke/base/run_folder.h"

namespace yoke::cli {

/// At most one `yoke train` works in a run's folder. The lock (flock) is inherited by the workers
/// and ends with the last of them, however they end; there is nothing to clean up.
class RunLock {
 public:
  /// Makes the folder if need be. Throws IoError that names the process that has it.
  explicit RunLock(const RunFolder& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  /// Locks anew, after the folder was set aside and made again.
  void renew();

 private:
  int take() const;

  RunFolder folder_;
  int descriptor_;
};

}  // namespace yoke::cli
