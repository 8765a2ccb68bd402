#include "yoke/elastic/message_stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/net/bytes.h"
#include "yoke/net/store_protocol.h"
#include "yoke/observe/json_text.h"

namespace yoke::elastic {

namespace {
/// Messages are small; one that waits longer than this much has a reader that does not read.
constexpr std::size_t kMostWaiting = 8 << 20;
}  // namespace

short MessageStream::events() const {
  return static_cast<short>(out_.empty() ? POLLIN : POLLIN | POLLOUT);
}

void MessageStream::push(const nlohmann::json& message) {
  const std::string text = json_text(message);
  net::ByteWriter writer;
  writer.put_text(text);
  out_.insert(out_.end(), writer.bytes().begin(), writer.bytes().end());
  broken_ = broken_ || out_.size() > kMostWaiting;
}

bool MessageStream::advance() {
  return !broken_ && write() && read();
}

bool MessageStream::write() {
  while (!out_.empty()) {
    const auto sent = ::send(socket_.number(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    out_.erase(out_.begin(), out_.begin() + sent);
  }
  return true;
}

bool MessageStream::read() {
  std::byte buffer[4096];
  for (;;) {
    const auto got = ::recv(socket_.number(), buffer, sizeof buffer, 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    // What came before the end is still there for next().
    if (got == 0) return false;
    in_.insert(in_.end(), buffer, buffer + got);
  }
}

std::optional<nlohmann::json> MessageStream::next() {
  try {
    const auto body = net::first_message(in_);
    if (!body) return std::nullopt;
    const auto text = std::string_view(reinterpret_cast<const char*>(body->data()), body->size());
    auto message = nlohmann::json::parse(text, nullptr, false);
    in_.erase(in_.begin(),
              in_.begin() + static_cast<std::ptrdiff_t>(net::kStoreLengthBytes + body->size()));
    if (message.is_object() && message.contains("say") && message["say"].is_string())
      return message;
  } catch (const CommunicationError&) {
    // A length that cannot be.
  }
  broken_ = true;
  return std::nullopt;
}

}  // namespace yoke::elastic
