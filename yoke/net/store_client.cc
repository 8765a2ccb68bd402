#include "yoke/net/store_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/log.h"
#include "yoke/net/store_table.h"

namespace yoke::net {
namespace {

using std::chrono::milliseconds;

/// What a healthy server needs to answer what it need not wait for.
constexpr auto kAnswerLimit = std::chrono::seconds(30);
constexpr auto kFirstPause = milliseconds(2);
constexpr auto kLongestPause = milliseconds(100);
/// Another job's server will be there for a while.
constexpr auto kElsewherePause = milliseconds(500);

[[noreturn]] void throw_server_gone(const Address& server) {
  throw PeerLost(0, cat("the store at ", server.text(),
                        " has closed the connection: rank 0 has ended. Look at its log first."));
}

/// One port that may be the store's.
struct Candidate {
  Address address;
  std::optional<Handshake> attempt;
  Clock::time_point next_try{};
  Clock::duration pause = kFirstPause;
  std::string last;

  void retry_after(Clock::duration span, std::string why) {
    attempt.reset();
    next_try = Clock::now() + span;
    last = std::move(why);
  }
};

void throw_if_final(const Handshake& attempt, const Identity& self) {
  if (attempt.verdict() == Verdict::kLowerGeneration) {
    throw JoinRefused(cat("job '", self.job, "' has reached generation ", attempt.peer_generation(),
                          "; this process belongs to generation ", self.generation,
                          ", which is over. It should end."));
  }
  if (attempt.verdict() == Verdict::kWrongWorld) {
    throw JoinRefused(
        cat(attempt.why(), ". All processes of a job must be started with one world size."));
  }
}

/// Starts or goes on with one attempt. True when it is through.
bool advance(Candidate& candidate, const Identity& self, const std::string& token) {
  if (!candidate.attempt) {
    if (Clock::now() < candidate.next_try) {
      return false;
    }
    candidate.attempt = Handshake::call(start_connecting(candidate.address), self, token);
  }
  auto& attempt = *candidate.attempt;
  switch (attempt.advance()) {
    case Handshake::State::kAccepted:
      return true;
    case Handshake::State::kRunning:
      if (attempt.expired()) {
        candidate.retry_after(kElsewherePause, candidate.address.text() + " does not answer");
      }
      return false;
    case Handshake::State::kRefused:
      throw_if_final(attempt, self);
      if (attempt.verdict() != Verdict::kAccepted) {
        if (candidate.last != attempt.why() && attempt.verdict() == Verdict::kWrongToken) {
          log_warning(attempt.why(), ". Looking on.");
        }
        candidate.retry_after(kElsewherePause, attempt.why());
      } else {
        candidate.pause = std::min<Clock::duration>(candidate.pause * 2, kLongestPause);
        candidate.retry_after(candidate.pause, attempt.why());
      }
      return false;
  }
  return false;
}

}  // namespace

Descriptor connect_to_store(const std::vector<Address>& candidates, const Identity& self,
                            const std::string& token, Deadline deadline, Address& server) {
  std::vector<Candidate> all;
  for (const auto& address : candidates) {
    all.push_back({.address = address, .attempt = {}, .last = {}});
  }
  std::vector<pollfd> polled;
  for (;;) {
    polled.clear();
    auto next = deadline.at();
    for (auto& candidate : all) {
      if (advance(candidate, self, token)) {
        server = candidate.address;
        return candidate.attempt->take_socket();
      }
      if (candidate.attempt) {
        polled.push_back({candidate.attempt->descriptor(), candidate.attempt->events(), 0});
        next = std::min(next, candidate.attempt->deadline().at());
      } else {
        next = std::min(next, candidate.next_try);
      }
    }
    if (deadline.passed()) {
      break;
    }
    auto pause = std::max<Clock::duration>(next - Clock::now(), Clock::duration::zero());
    ::poll(polled.data(), polled.size(), poll_milliseconds(Deadline::after(pause)));
  }
  std::string seen;
  for (const auto& candidate : all) {
    auto refused = candidate.last.find("Connection refused") != std::string::npos;
    seen += candidate.last.empty() || refused ? "" : cat(" ", candidate.last, ".");
  }
  throw Timeout("rendezvous", {0},
                cat("rank ", self.rank, " found no store of job '", self.job, "' at ",
                    candidates.front().text(), " or the ", candidates.size() - 1,
                    " ports after it within ", Seconds(deadline.span()).count(), " s.", seen,
                    " Is rank 0 running, and are MASTER_ADDR and MASTER_PORT its host and port?"));
}

StoreClient::StoreClient(Descriptor first, const Address& server, Identity self, std::string token)
    : server_(server), self_(std::move(self)), token_(std::move(token)) {
  idle_.push_back(std::move(first));
}

void StoreClient::set(const std::string& key, const std::string& value) {
  ask({.operation = StoreOperation::kSet, .key = key, .value = value},
      Deadline::after(kAnswerLimit));
}

std::int64_t StoreClient::add(const std::string& key, std::int64_t amount) {
  return ask({.operation = StoreOperation::kAdd, .number = amount, .key = key, .value = {}},
             Deadline::after(kAnswerLimit))
      .number;
}

std::string StoreClient::get(const std::string& key, Deadline deadline) {
  // The server keeps the time; ours, with some air, is for a server that does not answer at all.
  auto wait = std::chrono::ceil<milliseconds>(deadline.left());
  auto response =
      ask({.operation = StoreOperation::kGet, .number = wait.count(), .key = key, .value = {}},
          Deadline::after(wait + std::chrono::seconds(1)));
  if (!response.found) {
    throw_key_timeout(key, deadline);
  }
  return std::move(response.value);
}

StoreResponse StoreClient::ask(const StoreRequest& request, Deadline deadline) {
  auto connection = idle_connection(deadline);
  auto number = connection.number();
  auto late = [&]() -> StoreResponse {
    throw Timeout("store", {0},
                  cat("the store at ", server_.text(), " did not answer about key '", request.key,
                      "': rank 0 hangs, or is cut off."));
  };
  auto question = encode(request);
  std::span<const std::byte> rest = question;
  while (!rest.empty()) {
    auto sent = ::send(number, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      rest = rest.subspan(static_cast<std::size_t>(sent));
    } else if (errno != EAGAIN && errno != EINTR) {
      throw_server_gone(server_);
    } else if (!wait_for(number, POLLOUT, deadline)) {
      return late();
    }
  }
  std::vector<std::byte> answer;
  std::byte buffer[4096];
  std::optional<std::span<const std::byte>> body;
  while (!(body = first_message(answer))) {
    auto got = ::recv(number, buffer, sizeof buffer, 0);
    if (got > 0) {
      answer.insert(answer.end(), buffer, buffer + got);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      throw_server_gone(server_);
    } else if (!wait_for(number, POLLIN, deadline)) {
      return late();
    }
  }
  auto response = decode_store_response(*body);
  if (!response) {
    throw PeerLost(0, cat("the store at ", server_.text(), " broke its protocol."));
  }
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(connection));
  return std::move(*response);
}

Descriptor StoreClient::idle_connection(Deadline deadline) {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  auto attempt = Handshake::call(start_connecting(server_), self_, token_);
  while (attempt.advance() == Handshake::State::kRunning) {
    if (!wait_for(attempt.descriptor(), attempt.events(), deadline)) {
      throw Timeout("store", {0},
                    cat("the store at ", server_.text(), " does not take another connection."));
    }
  }
  if (attempt.state() == Handshake::State::kRefused) {
    throw_server_gone(server_);
  }
  return attempt.take_socket();
}

}  // namespace yoke::net
