#include "yoke/checkpoint/async_writer.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "yoke/base/error.h"
#include "yoke/base/exit_code.h"
#include "yoke/base/log.h"
#include "yoke/checkpoint/writer.h"

namespace yoke::checkpoint {

void SnapshotCopy::take(const Snapshot& snapshot) {
  std::size_t total = 0;
  for (const auto* part :
       {&snapshot.parameters, &snapshot.buffers, &snapshot.optimizer, &snapshot.train}) {
    for (const auto& [name, tensor] : *part) total += tensor.bytes.size();
  }
  memory_.resize(total);
  std::size_t offset = 0;
  const auto copy = [&](const tensor::NamedTensors& part) {
    tensor::NamedTensors copies = part;
    for (auto& [name, tensor] : copies) {
      std::ranges::copy(tensor.bytes, memory_.begin() + static_cast<std::ptrdiff_t>(offset));
      tensor.bytes = std::span(memory_).subspan(offset, tensor.bytes.size());
      offset += tensor.bytes.size();
    }
    return copies;
  };
  snapshot_ = {snapshot.step, copy(snapshot.parameters), copy(snapshot.buffers),
               copy(snapshot.optimizer), copy(snapshot.train)};
}

AsyncWriter::AsyncWriter(RunFolder folder, FaultPlan faults)
    : folder_(std::move(folder)), faults_(std::move(faults)) {}

AsyncWriter::~AsyncWriter() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void AsyncWriter::save(const Snapshot& snapshot, nlohmann::json extra, WriteOptions options) {
  const auto start = Clock::now();
  {
    std::unique_lock lock(mutex_);
    counters_.waits += in_flight_ ? 1 : 0;
    changed_.wait(lock, [&] { return !in_flight_; });
  }
  const auto free = Clock::now();
  counters_.waited += free - start;
  copy_.take(snapshot);
  counters_.copied += Clock::now() - free;
  ++counters_.saves;
  extra_ = std::move(extra);
  options_ = std::move(options);
  {
    const std::lock_guard lock(mutex_);
    in_flight_ = true;
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  changed_.notify_all();
}

bool AsyncWriter::try_save(const Snapshot& snapshot, nlohmann::json extra, WriteOptions options) {
  if (in_flight()) {
    ++counters_.waits;
    return false;
  }
  save(snapshot, std::move(extra), std::move(options));
  return true;
}

void AsyncWriter::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !in_flight_; });
}

bool AsyncWriter::in_flight() const {
  const std::lock_guard lock(mutex_);
  return in_flight_;
}

std::vector<SaveOutcome> AsyncWriter::outcomes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(outcomes_, {});
}

void AsyncWriter::run() {
  pthread_setname_np(pthread_self(), "yoke-save");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closing_ || in_flight_; });
    if (!in_flight_) return;
    lock.unlock();
    SaveOutcome outcome = write_one();
    lock.lock();
    outcomes_.push_back(std::move(outcome));
    in_flight_ = false;
    changed_.notify_all();
  }
}

SaveOutcome AsyncWriter::write_one() {
  const auto start = Clock::now();
  SaveOutcome outcome{.step = copy_.snapshot().step};
  try {
    write(folder_, copy_.snapshot(), extra_, options_, faults_);
  } catch (const Fenced& error) {
    outcome.kind = SaveOutcome::Kind::kFenced;
    outcome.message = error.what();
  } catch (const std::exception& error) {
    outcome.kind = SaveOutcome::Kind::kAbandoned;
    outcome.message = message_of(error);
  }
  outcome.seconds = Clock::now() - start;
  if (outcome.kind != SaveOutcome::Kind::kCommitted) {
    log_warning("the checkpoint of step ", outcome.step, " was not written: ", outcome.message,
                " Training goes on, and the next one is tried anew.");
  }
  return outcome;
}

}  // namespace yoke::checkpoint
