#pragma once

#include <span>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/net/transport.h"

namespace yoke::comm {

/// What an algorithm needs of one call: how to move bytes, as what, and until when.
struct Link {
  net::Transport& transport;
  const net::CallTag& tag;
  Deadline deadline;

  int rank() const { return transport.rank(); }
  int size() const { return transport.size(); }

  void exchange(const std::vector<net::Outgoing>& out, const std::vector<net::Incoming>& in) const {
    if (!out.empty() || !in.empty()) transport.exchange(tag, out, in, deadline);
  }
  void send(int peer, std::span<const std::byte> bytes) const { exchange({{peer, bytes}}, {}); }
  void receive(int peer, std::span<std::byte> bytes) const { exchange({}, {{peer, bytes}}); }
};

}  // namespace yoke::comm
