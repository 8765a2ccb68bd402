#include "yoke/net/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>

#include "yoke/base/error.h"

namespace yoke::net {
namespace {

using std::chrono::milliseconds;

[[noreturn]] void fail(const char* call, const Address& address, int error) {
  throw CommunicationError(cat(call, " failed for ", address.text(), ": ", error_text(error), "."));
}

Descriptor make_socket(const Address& address, int type) {
  Descriptor socket(::socket(address.storage.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) {
    fail("socket", address, errno);
  }
  return socket;
}

void send_without_delay(int socket) {
  int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

void Descriptor::reset() {
  if (number_ >= 0) {
    ::close(std::exchange(number_, -1));
  }
}

std::string error_text(int number) {
  return std::generic_category().message(number);
}

std::string Address::host() const {
  char text[INET6_ADDRSTRLEN] = {};
  if (storage.ss_family == AF_INET6) {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(storage);
    ::inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
  } else {
    const auto& four = reinterpret_cast<const sockaddr_in&>(storage);
    ::inet_ntop(AF_INET, &four.sin_addr, text, sizeof text);
  }
  return text;
}

std::uint16_t Address::port() const {
  // The port lies at the same place in both families.
  return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

bool Address::is_loopback() const {
  if (storage.ss_family == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr);
  }
  return ntohl(reinterpret_cast<const sockaddr_in&>(storage).sin_addr.s_addr) >> 24 == 127;
}

std::string Address::text() const {
  return storage.ss_family == AF_INET6 ? cat("[", host(), "]:", port()) : cat(host(), ":", port());
}

Address Address::with_port(std::uint16_t port) const {
  Address copy = *this;
  reinterpret_cast<sockaddr_in&>(copy.storage).sin_port = htons(port);
  return copy;
}

Address Address::any() const {
  Address copy = *this;
  if (storage.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(copy.storage).sin6_addr = in6addr_any;
  } else {
    reinterpret_cast<sockaddr_in&>(copy.storage).sin_addr.s_addr = htonl(INADDR_ANY);
  }
  return copy;
}

Address resolve(const std::string& host, std::uint16_t port, Deadline deadline) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  for (;;) {
    addrinfo* found = nullptr;
    int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
    if (error == 0) {
      Address address;
      std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
      address.length = found->ai_addrlen;
      ::freeaddrinfo(found);
      return address.with_port(port);
    }
    if (deadline.left() <= milliseconds(100)) {
      throw CommunicationError(cat("the host name '", host,
                                   "' cannot be resolved: ", ::gai_strerror(error),
                                   ". Check MASTER_ADDR and the name service."));
    }
    std::this_thread::sleep_for(milliseconds(100));
  }
}

Address resolve(const std::string& host_and_port, Deadline deadline) {
  auto colon = host_and_port.rfind(':');
  YOKE_ENSURE(colon != std::string::npos, "'", host_and_port, "' has no port.");
  auto host = host_and_port.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  auto port = static_cast<std::uint16_t>(std::stoul(host_and_port.substr(colon + 1)));
  return resolve(host, port, deadline);
}

Address route_to(const Address& remote) {
  // Connecting a datagram socket chooses the route and sends nothing. Any port but 0 will do.
  auto socket = make_socket(remote, SOCK_DGRAM);
  auto target = remote.with_port(9);
  if (::connect(socket.number(), reinterpret_cast<const sockaddr*>(&target.storage),
                target.length) != 0) {
    fail("no route: connect", remote, errno);
  }
  return own_address(socket.number()).with_port(0);
}

Address own_address(int socket) {
  Address address;
  address.length = sizeof address.storage;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) {
    throw CommunicationError(cat("getsockname failed: ", error_text(errno), "."));
  }
  return address;
}

std::string remote_text(int socket) {
  Address address;
  address.length = sizeof address.storage;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) {
    return "an unknown address";
  }
  return address.text();
}

Descriptor try_listen(const Address& address) {
  auto socket = make_socket(address, SOCK_STREAM);
  int on = 1;
  // Old connections of a run before this one must not keep the port for a minute.
  ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.number(), reinterpret_cast<const sockaddr*>(&address.storage),
             address.length) != 0 ||
      ::listen(socket.number(), SOMAXCONN) != 0) {
    if (errno == EADDRINUSE || errno == EACCES) {
      return {};
    }
    fail("bind", address, errno);
  }
  return socket;
}

Descriptor listen_on(const Address& address) {
  auto socket = try_listen(address);
  if (!socket) {
    fail("listen", address, EADDRINUSE);
  }
  return socket;
}

Descriptor start_connecting(const Address& address) {
  auto socket = make_socket(address, SOCK_STREAM);
  send_without_delay(socket.number());
  if (::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address.storage),
                address.length) != 0 &&
      errno != EINPROGRESS) {
    // A refusal on the loopback comes at once; the caller sees it like a late one, on its first
    // send.
    int error = errno;
    if (error != ECONNREFUSED && error != ETIMEDOUT && error != ENETUNREACH &&
        error != EHOSTUNREACH && error != EADDRNOTAVAIL) {
      fail("connect", address, error);
    }
  }
  return socket;
}

Descriptor accept_from(int listening) {
  Descriptor socket(::accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket) {
    send_without_delay(socket.number());
  } else if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK) {
    throw CommunicationError(cat("accept failed: ", error_text(errno), "."));
  }
  // Everything else concerns the one who tried to connect, or passes (no descriptors left).
  return socket;
}

bool wait_for(int descriptor, short events, Deadline deadline) {
  pollfd entry{descriptor, events, 0};
  for (;;) {
    int ready = ::poll(&entry, 1, poll_milliseconds(deadline));
    if (ready > 0) {
      return true;
    }
    if (ready < 0 && errno != EINTR) {
      throw CommunicationError(cat("poll failed: ", error_text(errno), "."));
    }
    if (deadline.passed()) {
      return false;
    }
  }
}

int poll_milliseconds(Deadline deadline) {
  auto left = std::chrono::ceil<milliseconds>(deadline.left()).count();
  if (deadline.can_be_cancelled()) {
    left = std::min<long long>(
        left, std::chrono::duration_cast<milliseconds>(Deadline::kCancelSlice).count());
  }
  return static_cast<int>(std::clamp<long long>(left, 0, 3'600'000));
}

}  // namespace yoke::net
