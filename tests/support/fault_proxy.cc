#include "tests/support/fault_proxy.h"

#include <linux/sockios.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "yoke/base/error.h"

namespace yoke::test {
namespace {

constexpr auto kNamingLimit = std::chrono::seconds(5);
constexpr auto kDrainLook = std::chrono::milliseconds(1);
constexpr auto kNever = std::chrono::hours(1);

bool try_again(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

std::size_t index(Direction direction) {
  return static_cast<std::size_t>(direction);
}

/// Bytes that the kernel has not brought to the other end yet.
bool all_has_arrived(int socket) {
  int waiting = 0;
  return ::ioctl(socket, SIOCOUTQ, &waiting) != 0 || waiting == 0;
}

}  // namespace

struct FaultProxy::Connection {
  Connection(net::Descriptor caller, net::Descriptor target, const RandomKey& key)
      : sockets{std::move(caller), std::move(target)},
        paths{FaultyPath(key.with("there")), FaultyPath(key.with("back"))} {}
  net::Descriptor& from(Direction direction) { return sockets[index(direction)]; }
  net::Descriptor& to(Direction direction) { return sockets[1 - index(direction)]; }
  bool open() const { return bool(sockets[0]); }

  net::Descriptor sockets[2];  ///< the caller's and the target's; empty when closed
  FaultyPath paths[2];
  bool full[2] = {false, false};   ///< the receiver of this direction takes no more for now
  bool ended[2] = {false, false};  ///< the end was passed on
  bool broken = false;             ///< an end has reset it, or there is nobody at the target
};

FaultProxy::FaultProxy(const std::string& target, std::uint64_t seed)
    : seed_(seed),
      target_(net::resolve(target, Deadline::after(kNamingLimit))),
      listening_(net::listen_on(net::resolve("127.0.0.1", 0, Deadline::after(kNamingLimit)))),
      address_(net::own_address(listening_.number()).text()),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  thread_ = std::thread([this] { run(); });
  ::pthread_setname_np(thread_.native_handle(), "fault proxy");
}

FaultProxy::~FaultProxy() {
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake();
  thread_.join();
}

void FaultProxy::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] auto written = ::write(wake_.number(), &one, sizeof one);
}

void FaultProxy::set(Direction direction, const PathFaults& faults) {
  change(direction, [&](PathFaults& now) { now = faults; });
}

void FaultProxy::change(Direction direction, const std::function<void(PathFaults&)>& edit) {
  std::lock_guard lock(mutex_);
  edit(faults_[index(direction)]);
  for (auto& connection : connections_) {
    connection.paths[index(direction)].set(faults_[index(direction)]);
  }
  wake();
}

void FaultProxy::flip_next(Direction direction) {
  std::lock_guard lock(mutex_);
  for (auto& connection : connections_) {
    connection.paths[index(direction)].flip_next();
  }
}

void FaultProxy::reset() {
  std::lock_guard lock(mutex_);
  for (auto& connection : connections_) {
    close(connection, true);
  }
  wake();
}

FaultProxy::Tally FaultProxy::tally(Direction direction, std::size_t number) const {
  std::lock_guard lock(mutex_);
  if (number >= connections_.size()) {
    throw InternalError(cat("there were ", connections_.size(), " connections, no ", number, "."));
  }
  const auto& path =
      std::next(connections_.begin(), static_cast<std::ptrdiff_t>(number))->paths[index(direction)];
  return {path.passed(), path.swallowed(), path.flipped()};
}

std::size_t FaultProxy::connections() const {
  std::lock_guard lock(mutex_);
  return connections_.size();
}

void FaultProxy::close(Connection& connection, bool by_reset) {
  for (auto& socket : connection.sockets) {
    if (socket && by_reset) {
      const linger at_once{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(socket.number(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    socket.reset();
  }
}

void FaultProxy::run() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    const auto now = Clock::now();
    auto next = now + kNever;
    polled_.assign({{wake_.number(), POLLIN, 0}, {listening_.number(), POLLIN, 0}});
    accept_all();
    for (auto& connection : connections_) {
      if (connection.open()) next = std::min(next, advance(connection, now));
      if (connection.open()) poll_for(connection, now);
    }
    const auto pause = std::max<Clock::duration>(next - Clock::now(), Clock::duration::zero());
    lock.unlock();
    ::poll(polled_.data(), polled_.size(), net::poll_milliseconds(Deadline::after(pause)));
    std::uint64_t woken;
    [[maybe_unused]] auto got = ::read(wake_.number(), &woken, sizeof woken);
    lock.lock();
  }
  for (auto& connection : connections_) {
    close(connection, true);
  }
}

void FaultProxy::accept_all() {
  while (auto caller = net::accept_from(listening_.number())) {
    const auto key = RandomKey(seed_).with("connection").with(connections_.size());
    net::Descriptor target;
    try {
      target = net::start_connecting(target_);
    } catch (const CommunicationError&) {
      continue;  // no descriptors left: the caller sees that nobody is there
    }
    auto& connection = connections_.emplace_back(std::move(caller), std::move(target), key);
    for (std::size_t i = 0; i < 2; ++i) connection.paths[i].set(faults_[i]);
  }
}

Clock::time_point FaultProxy::advance(Connection& connection, Clock::time_point now) {
  auto next = now + kNever;
  for (auto direction : {Direction::kThere, Direction::kBack}) {
    advance(connection, direction, now);
    const auto& path = connection.paths[index(direction)];
    if (connection.broken || path.wants_reset()) {
      // A reset must not overtake the bytes that came before it.
      if (!connection.broken && !all_has_arrived(connection.to(direction).number())) {
        next = std::min(next, now + kDrainLook);
        continue;
      }
      close(connection, true);
      return next;
    }
    if (auto due = path.due_at(); due && !connection.full[index(direction)]) {
      next = std::min(next, *due);
    }
  }
  if (connection.ended[0] && connection.ended[1]) close(connection, false);
  return next;
}

void FaultProxy::advance(Connection& connection, Direction direction, Clock::time_point now) {
  auto& path = connection.paths[index(direction)];
  std::array<std::byte, 65536> buffer;
  while (path.takes_more()) {
    const auto got = ::recv(connection.from(direction).number(), buffer.data(), buffer.size(), 0);
    if (got > 0) {
      path.take(std::span(buffer).first(static_cast<std::size_t>(got)), now);
    } else if (got == 0) {
      path.take_end();
    } else if (try_again(errno)) {
      break;
    } else {
      // A reset does not pass a cut cable either.
      path.faults().cut ? path.take_end() : void(connection.broken = true);
      break;
    }
  }
  connection.full[index(direction)] = false;
  for (auto bytes = path.due(now); !bytes.empty(); bytes = path.due(now)) {
    const auto sent =
        ::send(connection.to(direction).number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      path.passed_on(static_cast<std::size_t>(sent));
    } else if (try_again(errno)) {
      connection.full[index(direction)] = true;
      break;
    } else {
      connection.broken = true;
      return;
    }
  }
  if (path.end_is_due() && !path.wants_reset() && !connection.ended[index(direction)]) {
    ::shutdown(connection.to(direction).number(), SHUT_WR);
    connection.ended[index(direction)] = true;
  }
}

void FaultProxy::poll_for(Connection& connection, Clock::time_point now) {
  short events[2] = {0, 0};
  for (auto direction : {Direction::kThere, Direction::kBack}) {
    const auto& path = connection.paths[index(direction)];
    if (path.takes_more()) events[index(direction)] |= POLLIN;
    if (connection.full[index(direction)] && !path.due(now).empty()) {
      events[1 - index(direction)] |= POLLOUT;
    }
  }
  for (std::size_t i = 0; i < 2; ++i) {
    // With no events asked, poll would still report hang-ups, again and again.
    if (events[i] != 0) polled_.push_back({connection.sockets[i].number(), events[i], 0});
  }
}

}  // namespace yoke::test
