#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "yoke/comm/communicator.h"

namespace yoke::comm {

/// Runs started calls one after another on a thread of its own ("yoke-comm"), which is made at the
/// first call.
class CallQueue {
 public:
  explicit CallQueue(Communicator& communicator) : communicator_(communicator) {}
  /// Runs what was started, then joins the thread.
  ~CallQueue();
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  Work start(std::function<void(Communicator&)> call);
  /// Waits until everything that was started has ended, well or not. Returns at once on the queue's
  /// own thread.
  void drain() {
    if (unfinished_.load(std::memory_order_acquire) != 0) wait_for_all();
  }

 private:
  using Entry = std::pair<std::function<void(Communicator&)>, std::shared_ptr<Work::State>>;

  void wait_for_all();
  void run();

  Communicator& communicator_;
  std::mutex mutex_;  ///< guards entries_, closing_ and the making of thread_
  std::condition_variable changed_;
  std::deque<Entry> entries_;
  bool closing_ = false;
  std::atomic<int> unfinished_{0};  ///< changed under mutex_
  std::thread thread_;
};

}  // namespace yoke::comm
