#include "yoke/net/shm/transport.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/net/shm/mailbox.h"

namespace yoke::net {
namespace {

struct Frame {
  CallTag tag;
  std::uint64_t bytes;
};
static_assert(sizeof(Frame) == kShmFrameBytes);

struct alignas(64) Doorbell {
  Signal signal;
};

/// Messages of one exchange from or to one peer, moved one after another.
template <typename Bytes>
struct Queue {
  int peer = -1;
  std::vector<Bytes> messages{};
  std::size_t current = 0;
  std::size_t moved = 0;  ///< of the current message, header included
  bool done() const { return current == messages.size(); }
};

template <typename Bytes>
Queue<Bytes>& queue_of(std::vector<Queue<Bytes>>& queues, int peer) {
  for (auto& queue : queues) {
    if (queue.peer == peer) return queue;
  }
  queues.push_back({.peer = peer});
  return queues.back();
}

class ShmTransport final : public Transport {
 public:
  ShmTransport(std::shared_ptr<ShmGroup> group, std::shared_ptr<SharedRegion> region)
      : group_(std::move(group)), region_(std::move(region)) {}

  static std::size_t region_bytes(int ranks) {
    return ranks * sizeof(Doorbell) + static_cast<std::size_t>(ranks) * ranks * sizeof(Mailbox);
  }

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  std::string name() const override { return "shm"; }

  void exchange(const CallTag& tag, std::span<const Outgoing> out, std::span<const Incoming> in,
                Deadline deadline) override {
    group_->check();
    Exchange exchange{*this, tag};
    for (const Outgoing& message : out) {
      check_peer(message.peer);
      queue_of(exchange.outgoing, message.peer).messages.push_back(message.bytes);
    }
    for (const Incoming& message : in) {
      check_peer(message.peer);
      queue_of(exchange.incoming, message.peer).messages.push_back(message.bytes);
    }
    while (!exchange.done()) {
      exchange.seen = doorbell(rank()).value.load(std::memory_order_acquire);
      if (exchange.advance() || exchange.done()) continue;
      group_->wait(doorbell(rank()), exchange, deadline);
    }
  }

  void abort(const std::string& reason) override {
    group_->fail(
        {.kind = Failure::Kind::kAborted, .generation = group_->generation(), .message = reason});
  }

  TransportCounters counters() const override {
    const std::lock_guard lock(mutex_);
    return counters_;
  }

 private:
  struct Exchange final : Waiting {
    Exchange(ShmTransport& transport, const CallTag& tag) : transport(transport), tag(tag) {}

    bool ready() override {
      return transport.doorbell(transport.rank()).value.load(std::memory_order_acquire) != seen;
    }
    std::vector<int> missing() override {
      std::vector<int> peers;
      for (const auto& queue : incoming) {
        if (!queue.done()) peers.push_back(queue.peer);
      }
      for (const auto& queue : outgoing) {
        if (!queue.done() && std::find(peers.begin(), peers.end(), queue.peer) == peers.end()) {
          peers.push_back(queue.peer);
        }
      }
      return peers;
    }
    std::string operation() override { return describe(tag); }

    bool done() const {
      const auto is_done = [](const auto& queue) { return queue.done(); };
      return std::all_of(outgoing.begin(), outgoing.end(), is_done) &&
             std::all_of(incoming.begin(), incoming.end(), is_done);
    }
    /// Moves what can be moved; false if that was nothing.
    bool advance() {
      bool moved = false;
      for (auto& queue : outgoing) {
        if (!transport.send(tag, queue)) continue;
        transport.doorbell(queue.peer).ring();
        moved = true;
      }
      for (auto& queue : incoming) {
        if (!transport.receive(tag, queue)) continue;
        transport.doorbell(queue.peer).ring();
        moved = true;
      }
      return moved;
    }

    ShmTransport& transport;
    const CallTag& tag;
    std::vector<Queue<std::span<const std::byte>>> outgoing;
    std::vector<Queue<std::span<std::byte>>> incoming;
    std::uint32_t seen = 0;
  };

  bool send(const CallTag& tag, Queue<std::span<const std::byte>>& queue) {
    Mailbox& box = mailbox(rank(), queue.peer);
    bool moved = false;
    while (!queue.done()) {
      const auto bytes = queue.messages[queue.current];
      if (queue.moved == 0) {
        if (box.room() < sizeof(Frame)) break;
        const Frame frame{tag, bytes.size()};
        queue.moved = box.write(std::as_bytes(std::span(&frame, 1)));
        moved = true;
      }
      const std::size_t count = box.write(bytes.subspan(queue.moved - sizeof(Frame)));
      queue.moved += count;
      moved |= count != 0;
      if (queue.moved != sizeof(Frame) + bytes.size()) break;
      count_sent(bytes.size());
      ++queue.current;
      queue.moved = 0;
    }
    return moved;
  }

  bool receive(const CallTag& tag, Queue<std::span<std::byte>>& queue) {
    Mailbox& box = mailbox(queue.peer, rank());
    bool moved = false;
    while (!queue.done()) {
      const auto bytes = queue.messages[queue.current];
      if (queue.moved == 0) {
        if (box.available() < sizeof(Frame)) break;
        Frame frame;
        queue.moved = box.read(std::as_writable_bytes(std::span(&frame, 1)));
        moved = true;
        if (!(frame.tag == tag) || frame.bytes != bytes.size())
          refuse(tag, bytes.size(), frame, queue.peer);
      }
      const std::size_t count = box.read(bytes.subspan(queue.moved - sizeof(Frame)));
      queue.moved += count;
      moved |= count != 0;
      if (queue.moved != sizeof(Frame) + bytes.size()) break;
      ++queue.current;
      queue.moved = 0;
    }
    return moved;
  }

  [[noreturn]] void refuse(const CallTag& tag, std::size_t bytes, const Frame& frame, int peer) {
    group_
        ->fail({.kind = Failure::Kind::kMismatch,
                .rank = peer,
                .message = cat("rank ", rank(), " is in ", describe(tag), " and expects ", bytes,
                               " bytes of rank ", peer, ", which sent ", frame.bytes, " bytes of ",
                               describe(frame.tag),
                               ". Every rank must make the same calls in the same order.")})
        .raise();
  }

  void check_peer(int peer) const {
    YOKE_ENSURE(peer >= 0 && peer < size() && peer != rank(), "Rank ", rank(), " of ", size(),
                " exchanges a message with rank ", peer, ".");
  }

  Signal& doorbell(int rank) const {
    return reinterpret_cast<Doorbell*>(region_->bytes().data())[rank].signal;
  }
  Mailbox& mailbox(int from, int to) const {
    std::byte* boxes = region_->bytes().data() + size() * sizeof(Doorbell);
    return reinterpret_cast<Mailbox*>(boxes)[from * size() + to];
  }

  void count_sent(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    counters_.payload_bytes += bytes;
    counters_.wire_bytes += bytes + sizeof(Frame);
    ++counters_.messages;
  }

  const std::shared_ptr<ShmGroup> group_;
  const std::shared_ptr<SharedRegion> region_;
  mutable std::mutex mutex_;  ///< guards counters_
  TransportCounters counters_;
};

}  // namespace

std::unique_ptr<Transport> make_shm_transport(std::shared_ptr<ShmGroup> group, SharedMemory& memory,
                                              Deadline deadline) {
  auto region =
      group->open_region(memory, "mailboxes", ShmTransport::region_bytes(group->size()), deadline);
  return std::make_unique<ShmTransport>(std::move(group), std::move(region));
}

}  // namespace yoke::net
