#include "yoke/net/tcp/mesh.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <list>
#include <optional>

#include "yoke/base/error.h"
#include "yoke/net/handshake.h"
#include "yoke/net/listen_for_ranks.h"
#include "yoke/net/tcp/control_plane.h"

namespace yoke::net {
namespace {

using std::chrono::milliseconds;

enum Channel : std::uint8_t { kDataChannel = 0, kControlChannel = 1 };

constexpr auto kFirstPause = milliseconds(2);
constexpr auto kLongestPause = milliseconds(100);
/// A published port that has refused connections for so long belongs to a process that has ended.
constexpr auto kRefusedLimit = std::chrono::seconds(2);
constexpr std::size_t kMostStrangers = 128;

/// One connection that this rank makes, tried until it is there.
struct Call {
  int peer;
  Channel channel;
  Address address;
  std::optional<Handshake> attempt{};
  Clock::time_point next_try{};
  Clock::time_point refused_since{};
  Clock::duration pause = kFirstPause;
};

class MeshBuilder {
 public:
  MeshBuilder(const Place& place, Store& store, const std::string& name, const TcpOptions& options)
      : place_(place),
        store_(store),
        name_(name),
        token_(token_of(options.token, place.job)),
        cancelled_(options.cancelled),
        deadline_(Deadline::after(options.connect_timeout, options.cancelled)),
        refusals_(cat("rank ", place.rank)) {
    self_ = {.job = place.job,
             .purpose = "tcp/" + name,
             .generation = place.generation,
             .rank = place.rank,
             .size = place.size};
    mesh_.data.resize(static_cast<std::size_t>(place.size));
    mesh_.control.resize(static_cast<std::size_t>(place.size));
    listen(options.bind_address);
  }

  Mesh build() {
    try {
      look_up_peers();
      while (!complete()) {
        if (deadline_.passed()) {
          throw_missing();
        }
        step();
      }
    } catch (const CommunicationError& error) {
      tell_the_connected(Failure::of(error));
      throw;
    }
    return std::move(mesh_);
  }

 private:
  std::string key(int rank) const { return cat("tcp/", name_, "/", place_.generation, "/", rank); }

  void listen(const std::string& bind_address) {
    auto open = listen_for_ranks(place_, bind_address, deadline_);
    listening_ = std::move(open.socket);
    store_.set(key(place_.rank), open.published);
  }

  void look_up_peers() {
    for (int peer = 0; peer < place_.rank; ++peer) {
      std::string published;
      try {
        published = store_.get(key(peer), deadline_);
      } catch (const Timeout&) {
        throw_missing();
      }
      auto address = resolve(published, deadline_);
      for (auto channel : {kDataChannel, kControlChannel}) {
        calls_.push_back({.peer = peer, .channel = channel, .address = address});
      }
    }
  }

  bool complete() const {
    for (std::size_t rank = 0; rank < mesh_.data.size(); ++rank) {
      bool mine = static_cast<int>(rank) == place_.rank;
      if (!mine && !(mesh_.data[rank] && mesh_.control[rank])) {
        return false;
      }
    }
    return true;
  }

  [[noreturn]] void throw_missing() const {
    std::vector<int> missing;
    std::string names;
    for (int rank = 0; rank < place_.size; ++rank) {
      auto index = static_cast<std::size_t>(rank);
      if (rank != place_.rank && !(mesh_.data[index] && mesh_.control[index])) {
        missing.push_back(rank);
        names += cat(names.empty() ? "" : ", ", rank);
      }
    }
    throw Timeout("connect", missing,
                  cat("rank ", place_.rank, " could not connect communicator '", name_,
                      "' to rank ", names, " within ", Seconds(deadline_.span()).count(),
                      " s. Look at their logs; if they run, at the firewalls between the hosts."));
  }

  Descriptor& slot(int rank, std::uint8_t channel) {
    auto index = static_cast<std::size_t>(rank);
    return channel == kDataChannel ? mesh_.data[index] : mesh_.control[index];
  }

  /// Goes on with everything that can go on, then waits until something can again.
  void step() {
    auto next = deadline_.at();
    polled_.assign(1, {listening_.number(), POLLIN, 0});
    for (auto& call : calls_) {
      next = std::min(next, advance(call));
    }
    std::erase_if(calls_, [this](const Call& call) { return bool(slot(call.peer, call.channel)); });
    while (auto socket = accept_from(listening_.number())) {
      if (callers_.size() >= kMostStrangers + 2 * mesh_.data.size()) {
        callers_.pop_front();
      }
      callers_.push_back(Handshake::answer(std::move(socket), self_, token_));
    }
    for (auto& caller : callers_) {
      next = std::min(next, advance(caller));
    }
    std::erase_if(callers_, [](const Handshake& caller) {
      return caller.state() != Handshake::State::kRunning || caller.expired();
    });
    watch_the_connected();
    if (complete()) {
      return;
    }
    auto pause = std::max<Clock::duration>(next - Clock::now(), Clock::duration::zero());
    ::poll(polled_.data(), polled_.size(), poll_milliseconds(Deadline::after(pause, cancelled_)));
  }

  Clock::time_point advance(Call& call) {
    auto now = Clock::now();
    if (!call.attempt) {
      if (now < call.next_try) {
        return call.next_try;
      }
      call.attempt = Handshake::call(start_connecting(call.address), self_, token_, call.channel);
    }
    auto& attempt = *call.attempt;
    auto state = attempt.advance();
    if (state == Handshake::State::kAccepted) {
      if (attempt.peer() != call.peer) {
        throw PeerLost(call.peer, cat("rank ", attempt.peer(), " answers at the address of rank ",
                                      call.peer, "."));
      }
      slot(call.peer, call.channel) = attempt.take_socket();
      return deadline_.at();
    }
    if (state == Handshake::State::kRunning && !attempt.expired()) {
      polled_.push_back({attempt.descriptor(), attempt.events(), 0});
      return attempt.deadline().at();
    }
    if (state == Handshake::State::kRefused) {
      give_up_if_final(call, now);
    }
    call.attempt.reset();
    call.pause = std::min<Clock::duration>(call.pause * 2, kLongestPause);
    call.next_try = now + call.pause;
    return call.next_try;
  }

  void give_up_if_final(Call& call, Clock::time_point now) {
    const auto& attempt = *call.attempt;
    if (attempt.verdict() == Verdict::kLowerGeneration ||
        attempt.verdict() == Verdict::kWrongWorld || attempt.verdict() == Verdict::kWrongToken) {
      throw JoinRefused(
          cat("rank ", call.peer, " refused rank ", place_.rank, ": ", attempt.why(), "."));
    }
    if (!attempt.unreachable()) {
      call.refused_since = {};
    } else if (call.refused_since == Clock::time_point{}) {
      call.refused_since = now;
    } else if (now - call.refused_since > kRefusedLimit) {
      throw PeerLost(call.peer,
                     cat("rank ", call.peer, " has ended before communicator '", name_,
                         "' was connected: ", attempt.why(), ". Look at the end of its log."));
    }
  }

  Clock::time_point advance(Handshake& caller) {
    switch (caller.advance()) {
      case Handshake::State::kRunning:
        if (caller.expired()) {
          refusals_.refused(cat(remote_text(caller.descriptor()), " said nothing for ",
                                Seconds(kHandshakeLimit).count(), " s"));
          return deadline_.at();
        }
        polled_.push_back({caller.descriptor(), caller.events(), 0});
        return caller.deadline().at();
      case Handshake::State::kRefused:
        refusals_.refused(caller.why());
        return deadline_.at();
      case Handshake::State::kAccepted:
        if (caller.peer() <= place_.rank || caller.channel() > kControlChannel) {
          refusals_.refused(
              cat("rank ", caller.peer(), " has no business to call rank ", place_.rank));
        } else {
          // A rank that calls again knows that its first connection is gone.
          slot(caller.peer(), caller.channel()) = caller.take_socket();
        }
        return deadline_.at();
    }
    return deadline_.at();
  }

  /// A connected rank may fail, or end, while others are still missing.
  void watch_the_connected() {
    for (int rank = 0; rank < place_.size; ++rank) {
      const auto& socket = mesh_.control[static_cast<std::size_t>(rank)];
      if (!socket) {
        continue;
      }
      std::byte first;
      auto got = ::recv(socket.number(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
      if (got >= 0) {
        if (auto failure = peek_failure(rank, socket.number())) {
          failure->raise();
        }
      } else {
        polled_.push_back({socket.number(), POLLIN, 0});
      }
    }
  }

  void tell_the_connected(const Failure& failure) {
    auto frame = control_frame(FrameKind::kAbort, place_.generation, {}, encode(failure));
    for (const auto& socket : mesh_.control) {
      if (socket) {
        // Fresh and empty: it has room for this.
        ::send(socket.number(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      }
    }
  }

  const Place& place_;
  Store& store_;
  const std::string& name_;
  const std::string token_;
  const std::atomic<bool>* const cancelled_;
  const Deadline deadline_;
  Identity self_;
  Descriptor listening_;
  Mesh mesh_;
  std::vector<Call> calls_;
  std::list<Handshake> callers_;
  RefusalLog refusals_;
  std::vector<pollfd> polled_;
};

}  // namespace

Mesh connect_mesh(const Place& place, Store& store, const std::string& name,
                  const TcpOptions& options) {
  return MeshBuilder(place, store, name, options).build();
}

}  // namespace yoke::net
