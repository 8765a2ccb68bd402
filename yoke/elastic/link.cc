#include "yoke/elastic/link.h"

#include "yoke/base/error.h"
#include "yoke/elastic/coordinator.h"

namespace yoke::elastic {

namespace {
constexpr auto kPause = std::chrono::milliseconds(20);
}  // namespace

Link::Link(net::Address coordinator, std::string job, std::string token)
    : coordinator_(coordinator), job_(std::move(job)), token_(std::move(token)) {}

bool Link::advance() {
  if (stream_) {
    if (!ending_ && !stream_->advance()) ending_ = true;
    return false;
  }
  if (!attempt_) {
    if (Clock::now() < next_try_) return false;
    try {
      attempt_ = net::Handshake::call(net::start_connecting(coordinator_),
                                      coordinator_identity(job_), token_);
    } catch (const CommunicationError&) {
      next_try_ = Clock::now() + kPause;
      return false;
    }
  }
  switch (attempt_->advance()) {
    case net::Handshake::State::kAccepted:
      stream_.emplace(attempt_->take_socket());
      attempt_.reset();
      lost_since_.reset();
      ending_ = false;
      return true;
    case net::Handshake::State::kRefused:
      lose();
      return false;
    case net::Handshake::State::kRunning:
      if (attempt_->expired()) lose();
  }
  return false;
}

void Link::lose() {
  attempt_.reset();
  stream_.reset();
  if (!lost_since_) lost_since_ = Clock::now();
  next_try_ = Clock::now() + kPause;
}

void Link::push(const nlohmann::json& message) {
  if (stream_) stream_->push(message);
}

std::optional<nlohmann::json> Link::next() {
  if (!stream_) return std::nullopt;
  auto message = stream_->next();
  if (!message && ending_) lose();
  return message;
}

void Link::flush() {
  if (stream_ && !ending_ && !stream_->advance()) ending_ = true;
}

int Link::descriptor() const {
  if (attempt_) return attempt_->descriptor();
  return stream_ ? stream_->descriptor() : -1;
}

short Link::events() const {
  return attempt_ ? attempt_->events() : stream_->events();
}

}  // namespace yoke::elastic
