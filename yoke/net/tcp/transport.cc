#include "yoke/net/tcp/transport.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <set>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/net/tcp/call_log.h"
#include "yoke/net/tcp/control_plane.h"
#include "yoke/net/tcp/data_link.h"
#include "yoke/net/tcp/mesh.h"
#include "yoke/net/tcp/spin_budget.h"

namespace yoke::net {
namespace {

using std::chrono::milliseconds;

/// How long after the deadline to wait for the pongs that tell who is at fault: a rank that is
/// alive on a crowded machine must have the time to say so.
Clock::duration pong_limit(Deadline deadline) {
  return std::clamp<Clock::duration>(deadline.span() / 10, milliseconds(300), milliseconds(2000));
}
/// How long a call may stand still before the others are asked what they are in, so that different
/// calls are found long before the deadline.
Clock::duration patience(Deadline deadline) {
  return std::min<Clock::duration>(deadline.span() / 4, milliseconds(1000));
}
/// How long to wait then for the answers of all, to name the rank that differs from most.
constexpr auto kAnswerLimit = milliseconds(50);
/// How long the end of a data connection may come before the control frame that explains it.
constexpr auto kExplainLimit = milliseconds(200);
constexpr int kRoundsPerLook = 16;

class TcpTransport final : public Transport {
 public:
  TcpTransport(const Place& place, Mesh mesh, const TcpOptions& options)
      : rank_(place.rank),
        size_(place.size),
        generation_(place.generation),
        spin_(place.local_size <= static_cast<int>(std::thread::hardware_concurrency())),
        control_(place.rank, place.generation, std::move(mesh.control), options.user_timeout) {
    for (int peer = 0; peer < size_; ++peer) {
      links_.emplace_back(rank_, peer, std::move(mesh.data[static_cast<std::size_t>(peer)]),
                          generation_);
    }
  }

  ~TcpTransport() override {
    for (auto& link : links_) {
      if (link.peer() != rank_) {
        link.finish();
      }
    }
    control_.leave();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string name() const override { return "tcp"; }

  void exchange(const CallTag& tag, std::span<const Outgoing> out, std::span<const Incoming> in,
                Deadline deadline) override {
    raise_failure();
    try {
      run(tag, out, in, deadline);
    } catch (const CollectiveMismatch& error) {
      control_.fail(Failure::of(named_by_most(error))).raise();
    } catch (const CommunicationError& error) {
      control_.fail(Failure::of(error)).raise();
    } catch (const std::exception& error) {
      control_.fail(Failure::of(error));
      throw;
    }
  }

  void abort(const std::string& reason) override {
    control_.fail({.kind = Failure::Kind::kAborted,
                   .generation = generation_,
                   .message = cat("rank ", rank_, " called abort: ", reason)});
  }

  TransportCounters counters() const override {
    return {payload_bytes_.load(), wire_bytes_.load(), messages_.load()};
  }

 private:
  void run(const CallTag& tag, std::span<const Outgoing> out, std::span<const Incoming> in,
           Deadline deadline) {
    prepare(tag, out, in);
    tag_ = tag;
    log_.note(tag);
    asks_at_ = Deadline::after(patience(deadline));
    asked_ = false;
    TransportCounters sent;
    look();
    for (int round = 1; !active_.empty(); ++round) {
      if (!advance(sent)) {
        wait_for_peers(sent, tag, deadline);
      } else if (round % kRoundsPerLook == 0) {
        look();
        if (deadline.passed() && !active_.empty()) {
          give_up(tag, deadline);
        }
      }
    }
    payload_bytes_ += sent.payload_bytes;
    wire_bytes_ += sent.wire_bytes;
    messages_ += sent.messages;
  }

  /// Nothing can move now: returns when something has, or may.
  void wait_for_peers(TransportCounters& sent, const CallTag& tag, Deadline deadline) {
    if (active_.empty()) {
      return;
    }
    auto start = Clock::now();
    if (start >= deadline.at()) {
      give_up(tag, deadline);
    }
    if (!asked_ && start >= asks_at_.at()) {
      asked_ = true;
      control_.ping();
    }
    auto spin = spin_.begin();
    while (Clock::now() - start < spin) {
      if (advance(sent)) {
        return spin_.found();
      }
    }
    if (spin > Clock::duration::zero()) {
      spin_.found_nothing();
    }
    if (sleep(deadline)) {
      look();
    }
  }

  DataLink& link_to(int peer) {
    YOKE_ENSURE(peer >= 0 && peer < size_ && peer != rank_, "rank ", rank_, " of ", size_,
                " exchanges with rank ", peer, ".");
    return links_[static_cast<std::size_t>(peer)];
  }

  void prepare(const CallTag& tag, std::span<const Outgoing> out, std::span<const Incoming> in) {
    active_.clear();
    auto activate = [&](int peer) -> DataLink& {
      auto& link = link_to(peer);
      if (!link.busy()) {
        link.begin(tag);
        active_.push_back(&link);
      }
      return link;
    };
    for (const auto& message : out) {
      activate(message.peer).queue_send(message.bytes);
    }
    for (const auto& message : in) {
      activate(message.peer).queue_receive(message.bytes);
    }
  }

  bool advance(TransportCounters& sent) {
    bool moved = false;
    for (auto* link : active_) {
      if (link->sending()) {
        moved |= link->advance_send(sent);
      }
      if (link->receiving() && link->broken().empty()) {
        moved |= link->advance_receive();
      }
      if (!link->broken().empty()) {
        explain_broken(*link);
      }
    }
    std::erase_if(active_, [](const DataLink* link) { return !link->busy(); });
    return moved;
  }

  /// Hears what the peers say beside their data.
  void look() {
    hear();
    raise_mismatch();
    for (const auto* link : active_) {
      // What it still owes us may be in the socket; what we still owe it will never be read.
      if (link->sending() && control_.has_left(link->peer())) {
        throw_left(link->peer());
      }
    }
  }

  void hear() {
    control_.hear([this] { return Standing{tag_, awaited()}; });
    raise_failure();
  }

  void raise_mismatch() {
    if (!asked_) {
      return;
    }
    if (const auto found = log_.disagreement(rank_, answers())) {
      throw CollectiveMismatch(found->rank, found->text());
    }
  }

  /// A frame shows two ranks in different calls; the others say which of them is the odd one.
  CollectiveMismatch named_by_most(const CollectiveMismatch& error) {
    if (!asked_) {
      asked_ = true;
      control_.ping();
    }
    auto unanswered = [this] {  // This rank itself never answers.
      auto calls = answers();
      return std::count(calls.begin(), calls.end(), std::optional<CallTag>()) > 1;
    };
    auto limit = Deadline::after(kAnswerLimit);
    while (unanswered() && !limit.passed() && !control_.failed()) {
      wait_for(control_.descriptor(), POLLIN, limit);
      control_.hear([this] { return Standing{tag_, awaited()}; });
    }
    const auto found = log_.disagreement(rank_, answers());
    return found ? CollectiveMismatch(found->rank, found->text()) : error;
  }

  std::vector<std::optional<CallTag>> answers() const {
    std::vector<std::optional<CallTag>> calls(static_cast<std::size_t>(size_));
    for (int rank = 0; rank < size_; ++rank) {
      if (const auto& answer = control_.answer(rank)) {
        calls[static_cast<std::size_t>(rank)] = answer->tag;
      }
    }
    return calls;
  }

  void raise_failure() {
    if (control_.failed()) {
      control_.fail(*control_.failure()).raise();
    }
  }

  std::vector<std::int32_t> awaited() const {
    std::vector<std::int32_t> ranks;
    for (const auto* link : active_) {
      ranks.push_back(link->peer());
    }
    return ranks;
  }

  /// True when there is something to hear from the control plane.
  bool sleep(Deadline deadline) {
    if (!asked_ && asks_at_.at() < deadline.at()) {
      deadline = asks_at_;
    }
    polled_.assign(1, {control_.descriptor(), POLLIN, 0});
    for (const auto* link : active_) {
      polled_.push_back(
          {link->descriptor(),
           static_cast<short>((link->sending() ? POLLOUT : 0) | (link->receiving() ? POLLIN : 0)),
           0});
    }
    if (::poll(polled_.data(), polled_.size(), poll_milliseconds(deadline)) < 0 && errno != EINTR) {
      throw CommunicationError(cat("poll failed: ", error_text(errno), "."));
    }
    return polled_[0].revents != 0;
  }

  [[noreturn]] void throw_left(int peer) const {
    throw PeerLost(
        peer,
        cat("rank ", peer, " has left communicator while rank ", rank_,
            " still exchanged messages with it: it made fewer calls, or ended by an error of its "
            "own. Look at the end of its log."));
  }

  /// A data connection has ended early. Its owner may have told why on the other connection.
  [[noreturn]] void explain_broken(const DataLink& link) {
    auto limit = Deadline::after(kExplainLimit);
    while (!limit.passed() && !control_.has_left(link.peer())) {
      hear();
      wait_for(control_.descriptor(), POLLIN, limit);
    }
    if (control_.has_left(link.peer())) {
      throw_left(link.peer());
    }
    throw PeerLost(link.peer(), cat("rank ", link.peer(), " is gone: ", link.broken(),
                                    ". Look at the end of its log."));
  }

  /// The deadline has passed: finds out whose fault it is. A rank that answers is itself waiting
  /// for the ranks that it names; those that do not answer, at the ends of these chains, are the
  /// missing ones.
  [[noreturn]] void give_up(const CallTag& tag, Deadline deadline) {
    asked_ = true;
    control_.ping();
    auto limit = Deadline::after(pong_limit(deadline));
    std::set<int> silent;
    do {
      hear();
      silent = silent_ranks();
      if (!silent.empty()) {
        wait_for(control_.descriptor(), POLLIN, limit);
      }
    } while (!silent.empty() && !limit.passed());
    raise_mismatch();
    std::vector<int> missing(silent.begin(), silent.end());
    if (missing.empty()) {
      auto ranks = awaited();
      missing.assign(ranks.begin(), ranks.end());
      std::sort(missing.begin(), missing.end());
    }
    std::string names, calls;
    for (int rank : missing) {
      names += cat(names.empty() ? "" : ", ", rank);
      if (const auto& answer = control_.answer(rank)) {
        calls += cat("; rank ", rank, " is in ", describe(answer->tag));
      }
    }
    throw Timeout(
        describe(tag), missing,
        cat(describe(tag), " did not end within ", Seconds(deadline.span()).count(), " s: ",
            silent.empty() ? "all ranks answer, but nothing comes from rank "
                           : "no sign of life from rank ",
            names, " (seen by rank ", rank_, calls,
            "). Look whether it is stopped, out of memory or busy, or give the call more time."));
  }

  std::set<int> silent_ranks() const {
    std::set<int> silent, seen{rank_};
    std::vector<std::int32_t> open = awaited();
    while (!open.empty()) {
      int rank = open.back();
      open.pop_back();
      if (rank < 0 || rank >= size_ || !seen.insert(rank).second) {
        continue;
      }
      if (const auto& answer = control_.answer(rank)) {
        open.insert(open.end(), answer->awaited.begin(), answer->awaited.end());
      } else {
        silent.insert(rank);
      }
    }
    return silent;
  }

  const int rank_;
  const int size_;
  const std::uint64_t generation_;
  SpinBudget spin_;
  ControlPlane control_;
  std::vector<DataLink> links_;
  CallTag tag_;  ///< of the call in progress
  CallLog log_;
  Deadline asks_at_;               ///< where the others stand, if nothing moves until then
  bool asked_ = false;             ///< in this call
  std::vector<DataLink*> active_;  ///< links with something to move in this call
  std::vector<pollfd> polled_;
  std::atomic<std::uint64_t> payload_bytes_{0}, wire_bytes_{0}, messages_{0};
};

}  // namespace

std::unique_ptr<Transport> make_tcp_transport(const Place& place, Store& store,
                                              const std::string& name, const TcpOptions& options) {
  auto mesh = connect_mesh(place, store, name, options);
  return std::make_unique<TcpTransport>(place, std::move(mesh), options);
}

}  // namespace yoke::net
