#include "yoke/net/tcp/control_plane.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/log.h"

namespace yoke::net {
namespace {

using std::chrono::milliseconds;

/// How long a control frame may wait for room. There is always room, unless the peer has been
/// stopped for long.
constexpr auto kRoomLimit = milliseconds(20);

void watch_the_cable(int socket, Clock::duration user_timeout) {
  auto limit = std::max<std::int64_t>(std::chrono::ceil<milliseconds>(user_timeout).count(), 1000);
  int on = 1;
  int timeout = static_cast<int>(std::min<std::int64_t>(limit, 1 << 30));
  // An idle connection says nothing when the cable is cut: probes make it speak.
  int probe = std::clamp(timeout / 4000, 1, 60);
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &probe, sizeof probe);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &probe, sizeof probe);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
}

Failure lost(int rank, const std::string& why) {
  return {.kind = Failure::Kind::kPeerLost,
          .rank = rank,
          .message = cat("rank ", rank, " is gone: ", why, ". Look at the end of its log.")};
}

}  // namespace

ControlPlane::ControlPlane(int rank, std::uint64_t generation, std::vector<Descriptor> sockets,
                           Clock::duration user_timeout)
    : rank_(rank),
      generation_(generation),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      peers_(sockets.size()) {
  auto watch = [this](int descriptor, int number) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = static_cast<std::uint64_t>(number);
    if (::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
      throw CommunicationError(cat("epoll_ctl failed: ", error_text(errno), "."));
    }
  };
  watch(wake_.number(), rank);
  for (std::size_t peer = 0; peer < sockets.size(); ++peer) {
    if (sockets[peer]) {
      watch_the_cable(sockets[peer].number(), user_timeout);
      watch(sockets[peer].number(), static_cast<int>(peer));
      peers_[peer].socket = std::move(sockets[peer]);
    }
  }
}

void ControlPlane::hear(const std::function<Standing()>& standing) {
  std::array<epoll_event, 16> events{};
  int count = 0;
  do {
    count = ::epoll_wait(epoll_.number(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) {
      auto rank = static_cast<int>(events[static_cast<std::size_t>(i)].data.u64);
      if (rank != rank_) {
        read(rank, peers_[index(rank)], standing);
      }
    }
    // The wake-up stays readable: it is set once, and for good. A closed socket has been taken off.
  } while (count == static_cast<int>(events.size()));
}

void ControlPlane::read(int rank, Peer& peer, const std::function<Standing()>& standing) {
  std::array<std::byte, 4096> buffer;
  ssize_t got = 0;
  while ((got = ::recv(peer.socket.number(), buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0) {
    peer.in.insert(peer.in.end(), buffer.begin(), buffer.begin() + got);
  }
  int error = got < 0 ? errno : 0;
  while (!peer.closed && peer.in.size() >= kFrameHeaderBytes) {
    std::string why;
    auto header = decode_frame_header(std::span(peer.in).first(kFrameHeaderBytes), why);
    if (!header || header->kind == FrameKind::kData || header->generation != generation_) {
      return lose(
          rank, peer,
          cat("it broke the protocol: ", header ? "a frame that does not belong here" : why));
    }
    if (peer.in.size() - kFrameHeaderBytes < header->payload_bytes) {
      break;
    }
    auto payload =
        std::span<const std::byte>(peer.in).subspan(kFrameHeaderBytes, header->payload_bytes);
    if (crc32c(payload) != header->payload_crc) {
      return lose(rank, peer, "the checksum of a control frame does not fit it");
    }
    handle(rank, peer, *header, payload, standing);
    peer.in.erase(
        peer.in.begin(),
        peer.in.begin() + static_cast<std::ptrdiff_t>(kFrameHeaderBytes + header->payload_bytes));
  }
  if (got == 0) {
    lose(rank, peer, "it closed its connection without a goodbye");
  } else if (error != EAGAIN && error != EINTR) {
    lose(rank, peer, cat("its connection failed: ", error_text(error)));
  }
}

void ControlPlane::handle(int rank, Peer& peer, const FrameHeader& header,
                          std::span<const std::byte> payload,
                          const std::function<Standing()>& standing) {
  switch (header.kind) {
    case FrameKind::kAbort:
      if (auto failure = decode_failure(payload)) {
        record(*failure);
      } else {
        lose(rank, peer, "it tells of a failure that cannot be read");
      }
      return;
    case FrameKind::kGoodbye:
      peer.left = true;
      return;
    case FrameKind::kPing: {
      const Standing mine = standing();
      send(peer, FrameKind::kPong, mine.tag, encode(mine.awaited));
      return;
    }
    case FrameKind::kPong:
      if (auto awaited = decode_ranks(payload)) {
        peer.answer = Standing{header.tag, std::move(*awaited)};
      }
      return;
    case FrameKind::kData:
      return;
  }
}

void ControlPlane::lose(int rank, Peer& peer, const std::string& why) {
  peer.closed = true;
  ::epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, peer.socket.number(), nullptr);
  if (!peer.left) {
    record(lost(rank, why));
  }
}

void ControlPlane::record(const Failure& failure) {
  std::lock_guard lock(mutex_);
  if (!failure_) {
    failure_ = failure;
    failed_.store(true, std::memory_order_release);
  }
}

std::optional<Failure> ControlPlane::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

Failure ControlPlane::fail(const Failure& failure) {
  record(failure);
  auto first = *this->failure();
  bool tell = false;
  {
    std::lock_guard lock(mutex_);
    tell = !std::exchange(told_, true);
  }
  if (tell) {
    send_to_all(FrameKind::kAbort, encode(first));
  }
  std::uint64_t one = 1;
  // Fails only when the counter is full, and then it is readable anyway.
  [[maybe_unused]] auto written = ::write(wake_.number(), &one, sizeof one);
  return first;
}

void ControlPlane::ping() {
  for (auto& peer : peers_) {
    peer.answer.reset();
  }
  send_to_all(FrameKind::kPing, {});
}

void ControlPlane::leave() {
  if (!failed()) {
    send_to_all(FrameKind::kGoodbye, {});
  }
  for (auto& peer : peers_) {
    if (peer.socket) {
      ::shutdown(peer.socket.number(), SHUT_WR);
      // Closing a socket that holds unread bytes resets the connection, and may cost the peer our
      // last words.
      std::array<std::byte, 4096> rest;
      while (::recv(peer.socket.number(), rest.data(), rest.size(), MSG_DONTWAIT) > 0) {
      }
    }
  }
}

void ControlPlane::send_to_all(FrameKind kind, std::span<const std::byte> payload) {
  for (auto& peer : peers_) {
    if (peer.socket) {
      send(peer, kind, {}, payload);
    }
  }
}

void ControlPlane::send(Peer& peer, FrameKind kind, const CallTag& tag,
                        std::span<const std::byte> payload) {
  auto frame = control_frame(kind, generation_, tag, payload);
  std::lock_guard lock(sending_);
  std::span<const std::byte> rest = frame;
  auto deadline = Deadline::after(kRoomLimit);
  while (!rest.empty()) {
    auto sent = ::send(peer.socket.number(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      rest = rest.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EINTR) {
      continue;
    } else if (errno != EAGAIN || !wait_for(peer.socket.number(), POLLOUT, deadline)) {
      // Gone, or stopped: reading from it, or its silence, will show it. Half a frame must not be
      // followed.
      ::shutdown(peer.socket.number(), SHUT_WR);
      return;
    }
  }
}

std::optional<Failure> peek_failure(int peer, int socket) {
  std::vector<std::byte> bytes(kFrameHeaderBytes + kControlPayloadBytes);
  auto got = ::recv(socket, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  if (got == 0) {
    return lost(peer, "it closed its connection before all ranks were connected");
  }
  if (got < static_cast<ssize_t>(kFrameHeaderBytes)) {
    return std::nullopt;
  }
  bytes.resize(static_cast<std::size_t>(got));
  std::string why;
  auto header = decode_frame_header(std::span(bytes).first(kFrameHeaderBytes), why);
  if (!header || header->kind != FrameKind::kAbort ||
      bytes.size() < kFrameHeaderBytes + header->payload_bytes) {
    return std::nullopt;
  }
  return decode_failure(std::span(bytes).subspan(kFrameHeaderBytes, header->payload_bytes));
}

}  // namespace yoke::net
