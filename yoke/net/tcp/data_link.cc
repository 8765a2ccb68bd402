#include "yoke/net/tcp/data_link.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"

namespace yoke::net {
namespace {

bool try_again(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

DataLink::DataLink(int rank, int peer, Descriptor socket, std::uint64_t generation)
    : rank_(rank), peer_(peer), socket_(std::move(socket)), generation_(generation) {}

void DataLink::begin(const CallTag& tag) {
  YOKE_ENSURE(!busy(), "rank ", peer_, " still has messages of the last call.");
  tag_ = tag;
}

bool DataLink::advance_send(TransportCounters& counters) {
  if (frame_bytes_ == 0) {
    start_frame();
    counters.wire_bytes += frame_bytes_;
    counters.payload_bytes += frame_bytes_ - kFrameHeaderBytes;
    counters.messages += out_offset_ == 0 ? 1 : 0;
  }
  std::array<iovec, 2> parts{};
  std::size_t count = 0;
  if (frame_sent_ < kFrameHeaderBytes) {
    parts[count++] = {out_header_.data() + frame_sent_, kFrameHeaderBytes - frame_sent_};
  }
  std::size_t payload_sent = std::max(frame_sent_, kFrameHeaderBytes) - kFrameHeaderBytes;
  auto payload = out_.front().subspan(out_offset_, frame_bytes_ - kFrameHeaderBytes);
  if (payload_sent < payload.size()) {
    parts[count++] = {const_cast<std::byte*>(payload.data()) + payload_sent,
                      payload.size() - payload_sent};
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  auto sent = ::sendmsg(socket_.number(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) {
    if (!try_again(errno)) {
      broken_ = cat("sending failed: ", error_text(errno));
    }
    return false;
  }
  frame_sent_ += static_cast<std::size_t>(sent);
  if (frame_sent_ == frame_bytes_) {
    out_offset_ += payload.size();
    frame_bytes_ = frame_sent_ = 0;
    if (out_offset_ == out_.front().size()) {
      out_.pop_front();
      out_offset_ = 0;
    }
  }
  return true;
}

void DataLink::start_frame() {
  auto message = out_.front();
  auto payload =
      message.subspan(out_offset_, std::min(message.size() - out_offset_, kFramePayloadBytes));
  FrameHeader header;
  header.generation = generation_;
  header.tag = tag_;
  header.message_bytes = message.size();
  header.offset = out_offset_;
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  header.payload_crc = crc32c(payload);
  out_header_ = encode(header);
  frame_bytes_ = kFrameHeaderBytes + payload.size();
  frame_sent_ = 0;
}

bool DataLink::advance_receive() {
  // Of a message's first frame the header comes alone: nothing of another call may get into the
  // caller's memory. Of the others it comes along with the payload, whose size is known.
  auto message = in_.front();
  auto expected = std::min(message.size() - in_offset_, kFramePayloadBytes);
  auto wanted = header_checked_ ? std::size_t{header_.payload_bytes} : expected;
  std::array<iovec, 2> parts{};
  std::size_t count = 0;
  if (header_got_ < kFrameHeaderBytes) {
    parts[count++] = {in_header_.data() + header_got_, kFrameHeaderBytes - header_got_};
  }
  const bool may_be_of_another_call = in_offset_ == 0 && !header_checked_;
  if (payload_got_ < wanted && !may_be_of_another_call) {
    parts[count++] = {message.data() + in_offset_ + payload_got_, wanted - payload_got_};
  }
  msghdr reading{};
  reading.msg_iov = parts.data();
  reading.msg_iovlen = count;
  auto got = ::recvmsg(socket_.number(), &reading, MSG_DONTWAIT);
  if (got < 0) {
    if (!try_again(errno)) {
      broken_ = cat("receiving failed: ", error_text(errno));
    }
    return false;
  }
  if (got == 0) {
    broken_ = "it closed the connection";
    return false;
  }
  auto bytes = static_cast<std::size_t>(got);
  auto of_header = std::min(bytes, kFrameHeaderBytes - header_got_);
  header_got_ += of_header;
  payload_got_ += bytes - of_header;
  if (header_got_ == kFrameHeaderBytes && !header_checked_) {
    check_header();
  }
  if (header_checked_ && payload_got_ == header_.payload_bytes) {
    finish_frame();
  }
  return true;
}

void DataLink::check_header() {
  std::string why;
  auto header = decode_frame_header(in_header_, why);
  if (!header) {
    damaged(why);
  }
  if (header->kind != FrameKind::kData) {
    damaged("a control frame on the data connection");
  }
  if (header->generation != generation_) {
    damaged(cat("a frame of generation ", header->generation, ", here is ", generation_));
  }
  auto expected = in_.front().size();
  if (header->tag != tag_ || header->message_bytes != expected) {
    auto sizes = header->tag == tag_
                     ? cat(": it sent ", header->message_bytes, " bytes, expected were ", expected)
                     : std::string();
    throw CollectiveMismatch(peer_, cat("rank ", peer_, " called ", describe(header->tag),
                                        " where rank ", rank_, " called ", describe(tag_), sizes,
                                        ". All ranks make the same calls in the same order."));
  }
  if (header->offset != in_offset_ ||
      header->payload_bytes != std::min(expected - in_offset_, kFramePayloadBytes)) {
    damaged("a frame out of order");
  }
  header_ = *header;
  header_checked_ = true;
}

void DataLink::finish_frame() {
  auto payload = in_.front().subspan(in_offset_, header_.payload_bytes);
  if (crc32c(payload) != header_.payload_crc) {
    damaged("the checksum of a payload does not fit it");
  }
  in_offset_ += payload.size();
  header_got_ = payload_got_ = 0;
  header_checked_ = false;
  if (in_offset_ == in_.front().size()) {
    in_.pop_front();
    in_offset_ = 0;
  }
}

void DataLink::damaged(const std::string& what) const {
  throw PeerLost(peer_, cat("rank ", peer_,
                            " broke the protocol, or its bytes were damaged on the way: ", what,
                            " (in ", describe(tag_), ")."));
}

void DataLink::finish() {
  ::shutdown(socket_.number(), SHUT_WR);
  std::array<std::byte, 4096> rest;
  while (::recv(socket_.number(), rest.data(), rest.size(), MSG_DONTWAIT) > 0) {
  }
}

}  // namespace yoke::net
