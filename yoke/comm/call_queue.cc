#include "yoke/comm/call_queue.h"

#include <pthread.h>

namespace yoke::comm {

struct Work::State {
  std::mutex mutex;  ///< guards the rest
  std::condition_variable ended;
  bool done = false;
  std::exception_ptr error;

  void finish(std::exception_ptr with) {
    const std::lock_guard lock(mutex);
    error = std::move(with);
    done = true;
    ended.notify_all();
  }
};

void Work::wait() const {
  if (!state_) return;
  std::unique_lock lock(state_->mutex);
  state_->ended.wait(lock, [&] { return state_->done; });
  if (state_->error) std::rethrow_exception(state_->error);
}

bool Work::done() const {
  if (!state_) return true;
  const std::lock_guard lock(state_->mutex);
  return state_->done;
}

CallQueue::~CallQueue() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Work CallQueue::start(std::function<void(Communicator&)> call) {
  Work work;
  work.state_ = std::make_shared<Work::State>();
  {
    const std::lock_guard lock(mutex_);
    entries_.emplace_back(std::move(call), work.state_);
    unfinished_.fetch_add(1, std::memory_order_relaxed);
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  changed_.notify_all();
  return work;
}

void CallQueue::wait_for_all() {
  std::unique_lock lock(mutex_);
  if (thread_.get_id() == std::this_thread::get_id()) return;
  changed_.wait(lock, [&] { return unfinished_.load(std::memory_order_relaxed) == 0; });
}

void CallQueue::run() {
  pthread_setname_np(pthread_self(), "yoke-comm");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || !entries_.empty(); });
    if (entries_.empty()) return;
    Entry entry = std::move(entries_.front());
    entries_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      entry.first(communicator_);
    } catch (...) {
      error = std::current_exception();
    }
    entry.first = nullptr;
    entry.second->finish(std::move(error));
    lock.lock();
    unfinished_.fetch_sub(1, std::memory_order_release);
    changed_.notify_all();
  }
}

}  // namespace yoke::comm
