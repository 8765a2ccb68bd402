#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "yoke/net/socket.h"

namespace yoke::elastic {

/// JSON objects over a connection that has passed the handshake, each behind its length. Never
/// blocks. Not thread-safe.
class MessageStream {
 public:
  explicit MessageStream(net::Descriptor socket) : socket_(std::move(socket)) {}

  int descriptor() const { return socket_.number(); }
  /// What to poll() for.
  short events() const;

  void push(const nlohmann::json& message);
  /// Reads and writes what can be. False when the other side has gone, or broke the protocol.
  bool advance();
  /// The next message that has come.
  std::optional<nlohmann::json> next();
  /// Everything pushed has been handed to the kernel.
  bool drained() const { return out_.empty(); }

 private:
  bool read();
  bool write();

  net::Descriptor socket_;
  std::vector<std::byte> in_, out_;
  bool broken_ = false;
};

}  // namespace yoke::elastic
