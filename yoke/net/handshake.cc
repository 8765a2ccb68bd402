#include "yoke/net/handshake.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/log.h"

namespace yoke::net {
namespace {

std::array<std::byte, 32> scope_of(const Identity& self) {
  std::string text = self.job;
  text.push_back('\0');
  text += self.purpose;
  return hmac_sha256("yoke scope", std::as_bytes(std::span(text)));
}

std::array<std::byte, 32> fresh_nonce() {
  auto text = random_token(32);
  std::array<std::byte, 32> nonce{};
  std::memcpy(nonce.data(), text.data(), std::min(text.size(), nonce.size()));
  return nonce;
}

}  // namespace

std::string token_of(const std::string& token, const std::string& job) {
  return token.empty() ? cat("token of job ", job) : token;
}

Handshake Handshake::call(Descriptor socket, const Identity& self, std::string token,
                          std::uint8_t channel) {
  return Handshake(std::move(socket), self, std::move(token), channel, true);
}

Handshake Handshake::answer(Descriptor socket, const Identity& self, std::string token) {
  return Handshake(std::move(socket), self, std::move(token), 0, false);
}

Handshake::Handshake(Descriptor socket, const Identity& self, std::string token,
                     std::uint8_t channel, bool caller)
    : socket_(std::move(socket)),
      self_(self),
      token_(std::move(token)),
      caller_(caller),
      channel_(channel) {
  ours_.kind = caller ? GreetingKind::kHello : GreetingKind::kAnswer;
  ours_.channel = channel;
  ours_.generation = self.generation;
  ours_.rank = self.rank;
  ours_.size = self.size;
  ours_.nonce = fresh_nonce();
  ours_.scope = scope_of(self);
  if (caller) {
    say(ours_);
    expected_ = GreetingKind::kAnswer;
  }
}

short Handshake::events() const {
  return out_left_ > 0 ? POLLOUT : POLLIN;
}

Handshake::State Handshake::advance() {
  while (state_ == State::kRunning) {
    if (out_left_ > 0) {
      auto sent = ::send(socket_.number(), out_.data() + (out_.size() - out_left_), out_left_,
                         MSG_NOSIGNAL);
      if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        return state_;
      }
      if (sent < 0) {
        unreachable_ = caller_ && expected_ == GreetingKind::kAnswer;
        refuse(cat(other_side(), " cannot be reached: ", error_text(errno)));
        return state_;
      }
      out_left_ -= static_cast<std::size_t>(sent);
      if (out_left_ == 0 && after_saying_ != State::kRunning) {
        state_ = after_saying_;
      }
      continue;
    }
    auto got = ::recv(socket_.number(), in_.data() + in_got_, in_.size() - in_got_, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
      return state_;
    }
    if (got <= 0) {
      unreachable_ = caller_ && expected_ == GreetingKind::kAnswer && in_got_ == 0;
      refuse(cat(other_side(), " hung up before it had proved who it is"));
      return state_;
    }
    in_got_ += static_cast<std::size_t>(got);
    if (in_got_ == in_.size()) {
      in_got_ = 0;
      auto greeting = decode_greeting(in_);
      if (!greeting || greeting->kind != expected_) {
        refuse(cat(other_side(), " does not speak yoke's protocol"));
        return state_;
      }
      hear(*greeting);
    }
  }
  return state_;
}

void Handshake::say(const Greeting& greeting) {
  out_ = encode(greeting);
  out_left_ = out_.size();
}

void Handshake::hear(const Greeting& greeting) {
  switch (greeting.kind) {
    case GreetingKind::kHello: {
      theirs_ = greeting;
      channel_ = greeting.channel;
      judge_hello();
      return;
    }
    case GreetingKind::kAnswer: {
      theirs_ = greeting;
      if (greeting.verdict == Verdict::kElsewhere) {
        verdict_ = greeting.verdict;
        return refuse(cat(other_side(), " serves another job"));
      }
      // A verdict counts only from somebody who knows the token.
      if (!same_secret(greeting.proof, proof(false))) {
        verdict_ = Verdict::kWrongToken;
        return refuse(cat(other_side(), " does not know the token of job '", self_.job, "'"));
      }
      if (greeting.verdict != Verdict::kAccepted) {
        verdict_ = greeting.verdict;
        return refuse(cat(other_side(), " (generation ", greeting.generation, ", ", greeting.size,
                          " ranks) refused rank ", self_.rank, " of ", self_.size,
                          " of generation ", self_.generation));
      }
      Greeting answer;
      answer.kind = GreetingKind::kProof;
      answer.proof = proof(true);
      say(answer);
      expected_ = GreetingKind::kWelcome;
      return;
    }
    case GreetingKind::kProof: {
      Greeting welcome;
      welcome.kind = GreetingKind::kWelcome;
      if (!same_secret(greeting.proof, proof(true))) {
        welcome.verdict = verdict_ = Verdict::kWrongToken;
        why_ = cat(other_side(), " does not know the token of job '", self_.job,
                   "', or replays what another said");
      }
      say(welcome);
      after_saying_ = verdict_ == Verdict::kAccepted ? State::kAccepted : State::kRefused;
      return;
    }
    case GreetingKind::kWelcome: {
      if (greeting.verdict == Verdict::kAccepted) {
        state_ = State::kAccepted;
        return;
      }
      verdict_ = greeting.verdict;
      return refuse(cat(other_side(), " does not accept our token of job '", self_.job, "'"));
    }
  }
}

void Handshake::judge_hello() {
  verdict_ = verdict_on(theirs_);
  ours_.verdict = verdict_;
  ours_.channel = channel_;
  Greeting answer = ours_;
  if (verdict_ != Verdict::kElsewhere) {
    answer.proof = proof(false);
  }
  say(answer);
  expected_ = GreetingKind::kProof;
  if (verdict_ != Verdict::kAccepted) {
    why_ = verdict_ == Verdict::kElsewhere
               ? cat(other_side(), " looks for another job")
               : cat(other_side(), " says it is rank ", theirs_.rank, " of ", theirs_.size,
                     " of generation ", theirs_.generation, "; here are ", self_.size,
                     " ranks of generation ", self_.generation);
    after_saying_ = State::kRefused;
  }
}

Verdict Handshake::verdict_on(const Greeting& hello) const {
  if (!same_secret(hello.scope, ours_.scope)) {
    return Verdict::kElsewhere;
  }
  if (hello.generation != self_.generation) {
    return hello.generation < self_.generation ? Verdict::kLowerGeneration
                                               : Verdict::kHigherGeneration;
  }
  if (hello.size != self_.size || hello.rank < 0 || hello.rank >= self_.size) {
    return Verdict::kWrongWorld;
  }
  return Verdict::kAccepted;
}

std::array<std::byte, 32> Handshake::proof(bool of_caller) const {
  Greeting hello = caller_ ? ours_ : theirs_;
  Greeting answer = caller_ ? theirs_ : ours_;
  hello.proof = answer.proof = {};
  auto first = encode(hello), second = encode(answer);
  std::vector<std::byte> message;
  message.push_back(std::byte{of_caller ? std::uint8_t{1} : std::uint8_t{2}});
  message.insert(message.end(), first.begin(), first.end());
  message.insert(message.end(), second.begin(), second.end());
  return hmac_sha256(token_, message);
}

void Handshake::refuse(std::string why) {
  why_ = std::move(why);
  state_ = State::kRefused;
}

void RefusalLog::refused(const std::string& why) {
  ++count_;
  if (count_ <= 10) {
    log_warning("refused a connection to ", where_, ": ", why, ".");
  } else if (std::has_single_bit(count_)) {
    log_warning("refused ", count_, " connections to ", where_, " so far; the last one: ", why,
                ".");
  }
}

std::string Handshake::other_side() const {
  return remote_text(socket_.number());
}

}  // namespace yoke::net
