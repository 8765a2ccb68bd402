#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <utility>

#include "yoke/base/clock.h"

/// The few calls of the sockets interface that net needs. All sockets are non-blocking and closed
/// by exec. Failures throw CommunicationError that names the call, the address and the cause.
namespace yoke::net {

/// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      number_ = std::exchange(other.number_, -1);
    }
    return *this;
  }
  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  void reset();

 private:
  int number_ = -1;
};

/// An IPv4 or IPv6 address with its port.
struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  std::string host() const;
  std::uint16_t port() const;
  bool is_loopback() const;
  /// "10.0.0.1:4000", "[fe80::1]:4000".
  std::string text() const;
  Address with_port(std::uint16_t port) const;
  /// Every interface of this machine, in the same family.
  Address any() const;
};

/// Looks the name up, again and again until the deadline (names of a cluster may appear late).
Address resolve(const std::string& host, std::uint16_t port, Deadline deadline);
/// "host:port" as Address::text() writes it.
Address resolve(const std::string& host_and_port, Deadline deadline);
/// The address from which this machine reaches `remote`; port 0. Sends nothing.
Address route_to(const Address& remote);
Address own_address(int socket);
/// "an unknown address" when the connection is gone.
std::string remote_text(int socket);

/// Empty when the port is taken; port 0 takes a free one.
Descriptor try_listen(const Address& address);
Descriptor listen_on(const Address& address);
/// A connection under way, with TCP_NODELAY; a refusal shows at the first send.
Descriptor start_connecting(const Address& address);
/// Empty when nobody is waiting.
Descriptor accept_from(int listening);

/// poll() on one descriptor. False at the deadline.
bool wait_for(int descriptor, short events, Deadline deadline);
/// A poll() time-out that never ends before the deadline: milliseconds, rounded up.
int poll_milliseconds(Deadline deadline);

/// "Connection refused".
std::string error_text(int number);

}  // namespace yoke::net
