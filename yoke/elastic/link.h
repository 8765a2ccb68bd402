#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "yoke/base/clock.h"
#include "yoke/elastic/message_stream.h"
#include "yoke/net/handshake.h"
#include "yoke/net/socket.h"

namespace yoke::elastic {

/// A client's connection to the coordinator, that comes back by itself: it is tried again while
/// there is no answer, and begins with the client's greeting each time. Never blocks: whoever owns
/// it polls. Not thread-safe.
class Link {
 public:
  Link(net::Address coordinator, std::string job, std::string token);

  /// Goes on with what can go on. True when a new connection has just been made: push the greeting
  /// and whatever the coordinator may not have heard.
  bool advance();
  bool connected() const { return stream_.has_value(); }
  /// Since when it is not; nothing while it is.
  std::optional<Clock::time_point> lost_since() const { return lost_since_; }

  /// Dropped when there is no connection.
  void push(const nlohmann::json& message);
  std::optional<nlohmann::json> next();
  /// Hands over what was pushed.
  void flush();

  /// What to poll; -1: nothing, wait until next_try().
  int descriptor() const;
  short events() const;
  Clock::time_point next_try() const { return next_try_; }

 private:
  void lose();

  const net::Address coordinator_;
  const std::string job_, token_;
  std::optional<net::Handshake> attempt_;
  std::optional<MessageStream> stream_;
  std::optional<Clock::time_point> lost_since_ = Clock::now();
  Clock::time_point next_try_{};
  bool ending_ = false;  ///< the other side has closed; what it said before is still to be read
};

}  // namespace yoke::elastic
