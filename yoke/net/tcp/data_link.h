#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>

#include "yoke/net/socket.h"
#include "yoke/net/transport.h"
#include "yoke/net/wire.h"

namespace yoke::net {

/// The data connection to one peer: messages cut into frames, both ways, without ever blocking.
/// What a peer sends for a later call stays in the socket until that call reads it, straight into
/// the caller's memory.
///
/// Data and control have a connection each: an abort is then never stuck behind data that nobody
/// reads, and a peer that is busy for a long time (its window closed) is not taken for a cut cable.
class DataLink {
 public:
  DataLink(int rank, int peer, Descriptor socket, std::uint64_t generation);

  /// Forgets what the last call left, which is nothing unless it threw.
  void begin(const CallTag& tag);
  void queue_send(std::span<const std::byte> bytes) { out_.push_back(bytes); }
  void queue_receive(std::span<std::byte> bytes) { in_.push_back(bytes); }

  int peer() const { return peer_; }
  int descriptor() const { return socket_.number(); }
  bool sending() const { return !out_.empty(); }
  bool receiving() const { return !in_.empty(); }
  bool busy() const { return sending() || receiving(); }
  /// The connection has ended while something was still to move: why. Empty otherwise.
  const std::string& broken() const { return broken_; }

  /// Moves at most about a frame. True if anything moved.
  bool advance_send(TransportCounters& counters);
  /// Throws CollectiveMismatch for a frame of another call, PeerLost for one that is damaged.
  bool advance_receive();

  /// Sends no more, and takes in what has arrived, so that closing does not reset the connection.
  void finish();

 private:
  void start_frame();
  void check_header();
  void finish_frame();
  [[noreturn]] void damaged(const std::string& what) const;

  const int rank_, peer_;
  Descriptor socket_;
  const std::uint64_t generation_;
  std::string broken_;
  CallTag tag_;

  std::deque<std::span<const std::byte>> out_;
  std::size_t out_offset_ = 0;  ///< bytes of out_.front() in earlier frames
  FrameHeaderBytes out_header_{};
  std::size_t frame_bytes_ = 0;  ///< header and payload of the frame under way; 0: none
  std::size_t frame_sent_ = 0;

  std::deque<std::span<std::byte>> in_;
  std::size_t in_offset_ = 0;  ///< bytes of in_.front() from earlier frames
  FrameHeaderBytes in_header_{};
  std::size_t header_got_ = 0;
  std::size_t payload_got_ = 0;
  FrameHeader header_;  ///< of the frame under way, once header_got_ is complete
  bool header_checked_ = false;
};

}  // namespace yoke::net
