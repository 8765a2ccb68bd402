#include "yoke/net/shm/group.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <thread>

#include "yoke/base/error.h"

namespace yoke::net {
namespace {

constexpr auto kSlice = std::chrono::milliseconds(20);
/// A live sleeper beats once a slice; a rank that does not within this span is computing, stopped
/// or dead.
constexpr auto kGrace = std::chrono::milliseconds(200);
constexpr std::size_t kWords = ShmGroup::kMostRanks / 64;

void copy_text(char* to, std::size_t room, const std::string& text) {
  const std::size_t length = std::min(room - 1, text.size());
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

std::string list_of(const std::vector<int>& ranks) {
  std::string list = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) list += cat(i == 0 ? "" : ", ", ranks[i]);
  return list;
}

}  // namespace

/// Written once, by whoever takes `state` from 0 to 1; read by all once it is 2.
struct alignas(64) ShmGroup::Cause {
  std::atomic<std::uint32_t> state;
  std::uint8_t kind;
  std::int32_t rank;
  std::uint64_t generation;
  std::uint64_t missing[kWords];
  char operation[192];
  char message[1024];
};

/// Written by its rank, read by all.
struct alignas(64) ShmGroup::Member {
  Signal process;                       ///< 0: has not joined
  Signal opened;                        ///< how many regions it has opened
  std::atomic<std::uint32_t> departed;  ///< left in good order
  std::atomic<std::uint32_t> waiting;   ///< asleep in wait(); waits_for says for whom
  std::atomic<std::uint32_t> beats;     ///< one for each slice of sleep
  std::atomic<std::uint64_t> waits_for[kWords];
};

struct ShmGroup::Board {
  Cause cause;
  /// The member of rank r is r places after this one.
  Member first;
};

ShmGroup::Member& ShmGroup::member(int rank) const {
  return *(&reinterpret_cast<Board*>(region_->bytes().data())->first + rank);
}

void ShmGroup::yield_core() {
  sched_yield();
}

template <typename SignalOf>
void ShmGroup::await_all(const SignalOf& signal_of, std::uint32_t value, const std::string& what,
                         Deadline deadline) {
  struct ForAll final : Waiting {
    ForAll(int size, const SignalOf& signal_of, std::uint32_t value, const std::string& what)
        : size(size), signal_of(signal_of), value(value), what(what) {}
    bool is_there(int r) const {
      return signal_of(r).value.load(std::memory_order_acquire) >= value;
    }
    bool ready() override { return is_there(rank); }
    std::vector<int> missing() override {
      std::vector<int> absent;
      for (int r = 0; r < size; ++r) {
        if (!is_there(r)) absent.push_back(r);
      }
      return absent;
    }
    std::string operation() override { return what; }

    const int size;
    const SignalOf& signal_of;
    const std::uint32_t value;
    const std::string& what;
    int rank = 0;
  } all(size_, signal_of, value, what);
  for (; all.rank < size_; ++all.rank) wait(signal_of(all.rank), all, deadline);
}

std::shared_ptr<ShmGroup> ShmGroup::join(const Place& place, SharedMemory& memory,
                                         const std::string& name, Deadline deadline) {
  if (place.size > kMostRanks) {
    throw ConfigError(cat("shared memory joins at most ", kMostRanks,
                          " ranks of a host, and there are ", place.size,
                          ". Use transport = \"tcp\", or fewer ranks."));
  }
  const std::string region_name = name + "/group";
  auto region = place.rank == 0
                    ? memory.create(region_name, sizeof(Board) + place.size * sizeof(Member))
                    : memory.open(region_name, deadline);
  std::shared_ptr<ShmGroup> group(new ShmGroup(place, name, std::move(region)));
  group->member(place.rank).process.post(static_cast<std::uint32_t>(getpid()));
  group->await_all([&](int rank) -> Signal& { return group->member(rank).process; }, 1,
                   cat("join of \"", name, "\""), deadline);
  if (memory.within_one_process()) return group;
  for (int rank = 0; rank < place.size; ++rank) {
    if (rank == place.rank) continue;
    const auto process = static_cast<pid_t>(group->member(rank).process.value.load());
    if (!group->watch_.add(rank, process)) {
      group
          ->fail({.kind = Failure::Kind::kPeerLost,
                  .rank = rank,
                  .message = cat("rank ", rank, " (process ", process, ") ended while \"", name,
                                 "\" was set up. See the log of that rank.")})
          .raise();
    }
  }
  return group;
}

ShmGroup::ShmGroup(const Place& place, const std::string& name,
                   std::shared_ptr<SharedRegion> region)
    : rank_(place.rank),
      size_(place.size),
      generation_(place.generation),
      name_(name),
      policy_(WaitPolicy::of(place.size, usable_cores())),
      region_(std::move(region)) {}

ShmGroup::~ShmGroup() {
  member(rank_).departed.store(1, std::memory_order_seq_cst);
}

std::shared_ptr<SharedRegion> ShmGroup::open_region(SharedMemory& memory, const std::string& name,
                                                    std::size_t bytes, Deadline deadline) {
  const std::string full = cat(name_, "/", name);
  auto region = rank_ == 0 ? memory.create(full, bytes) : memory.open(full, deadline);
  member(rank_).opened.post(++opened_);
  await_all([this](int rank) -> Signal& { return member(rank).opened; }, opened_,
            cat("open of shared memory \"", full, "\""), deadline);
  return region;
}

void ShmGroup::sleep(Signal& signal, Waiting& waiting, Deadline deadline) {
  Member& self = member(rank_);
  struct Asleep {
    explicit Asleep(Member& member) : member(member) { member.waiting.store(1); }
    ~Asleep() { member.waiting.store(0); }
    Member& member;
  } asleep(self);
  while (true) {
    const std::uint32_t seen = signal.value.load(std::memory_order_seq_cst);
    if (waiting.ready()) return;
    announce(waiting.missing());
    const auto left = deadline.left();
    signal.sleep(seen, std::min<Clock::duration>(kSlice, left));
    self.beats.fetch_add(1);
    if (waiting.ready()) return;
    check_peers(waiting);
    if (left > Clock::duration::zero()) continue;
    const std::string operation = waiting.operation();
    const std::vector<int> missing = behind(waiting.missing(), waiting);
    if (waiting.ready()) return;
    check();
    fail({.kind = Failure::Kind::kTimeout,
          .missing = missing,
          .operation = operation,
          .message = cat(operation, " of \"", name_, "\" waited ", Seconds(deadline.span()).count(),
                         " s for ", list_of(missing),
                         ", which did not come. Look at its log for what it does instead; a longer "
                         "timeout helps "
                         "only if it is slow.")})
        .raise();
  }
}

void ShmGroup::announce(const std::vector<int>& missing) {
  std::uint64_t words[kWords] = {};
  for (const int rank : missing) words[rank / 64] |= std::uint64_t{1} << (rank % 64);
  for (std::size_t i = 0; i < kWords; ++i) member(rank_).waits_for[i].store(words[i]);
}

void ShmGroup::check_peers(Waiting& waiting) {
  check();
  int lost = -1;
  const char* how = "ended";
  for (const int rank : watch_.ended()) {
    if (member(rank).departed.load() == 0) lost = rank;
  }
  if (lost < 0) {
    for (const int rank : waiting.missing()) {
      if (member(rank).departed.load() == 0) continue;
      lost = rank;
      how = "left the group";
      break;
    }
    if (lost < 0) return;
  }
  // What it did last, it did before it ended or left: the flag that is waited for, or the cause of
  // its failure.
  if (waiting.ready()) return;
  check();
  fail({.kind = Failure::Kind::kPeerLost,
        .rank = lost,
        .message = cat("rank ", lost, " (process ", member(lost).process.value.load(), ") ", how,
                       " while ", waiting.operation(), " of \"", name_,
                       "\" needed it. See the log of that rank.")})
      .raise();
}

std::vector<int> ShmGroup::behind(const std::vector<int>& missing, Waiting& waiting) {
  const bool some_wait = std::any_of(missing.begin(), missing.end(),
                                     [&](int rank) { return member(rank).waiting.load() != 0; });
  if (!some_wait) return missing;
  std::vector<std::uint32_t> before(size_);
  for (int rank = 0; rank < size_; ++rank) before[rank] = member(rank).beats.load();
  for (const auto until = Deadline::after(kGrace); !until.passed() && !waiting.ready();) {
    std::this_thread::sleep_for(kSlice);
    check();
  }
  std::set<int> seen{rank_}, stuck;
  std::vector<int> open = missing;
  while (!open.empty()) {
    const int rank = open.back();
    open.pop_back();
    if (!seen.insert(rank).second) continue;
    const Member& peer = member(rank);
    if (peer.waiting.load() == 0 || peer.beats.load() == before[rank]) {
      stuck.insert(rank);
      continue;
    }
    for (int other = 0; other < size_; ++other) {
      if (peer.waits_for[other / 64].load() >> (other % 64) & 1) open.push_back(other);
    }
  }
  return stuck.empty() ? missing : std::vector<int>(stuck.begin(), stuck.end());
}

Failure ShmGroup::fail(const Failure& failure) {
  Cause& shared = reinterpret_cast<Board*>(region_->bytes().data())->cause;
  std::uint32_t none = 0;
  if (!shared.state.compare_exchange_strong(none, 1)) {
    // Its writer needs microseconds, unless it was killed in them.
    for (const auto until = Deadline::after(kGrace); shared.state.load() != 2 && !until.passed();)
      yield_core();
    return shared.state.load() == 2 ? cause() : failure;
  }
  shared.kind = static_cast<std::uint8_t>(failure.kind);
  shared.rank = failure.rank;
  shared.generation = failure.generation;
  std::memset(shared.missing, 0, sizeof shared.missing);
  for (const int rank : failure.missing)
    shared.missing[rank / 64] |= std::uint64_t{1} << (rank % 64);
  copy_text(shared.operation, sizeof shared.operation, failure.operation);
  copy_text(shared.message, sizeof shared.message, failure.message);
  shared.state.store(2);
  return failure;
}

bool ShmGroup::failed() const {
  return reinterpret_cast<Board*>(region_->bytes().data())->cause.state.load() == 2;
}

void ShmGroup::check() const {
  if (failed()) cause().raise();
}

Failure ShmGroup::cause() const {
  const Cause& shared = reinterpret_cast<Board*>(region_->bytes().data())->cause;
  Failure failure{.kind = static_cast<Failure::Kind>(shared.kind),
                  .rank = shared.rank,
                  .generation = shared.generation,
                  .missing = {},
                  .operation = shared.operation,
                  .message = shared.message};
  for (int rank = 0; rank < size_; ++rank) {
    if (shared.missing[rank / 64] >> (rank % 64) & 1) failure.missing.push_back(rank);
  }
  return failure;
}

}  // namespace yoke::net
