#include "yoke/net/store_server.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>

#include "yoke/base/log.h"

namespace yoke::net {
namespace {

constexpr auto kLeaveLimitOfFailure = std::chrono::milliseconds(500);
/// Connections that have not proved themselves yet. Beyond it the oldest goes.
constexpr std::size_t kMostStrangers = 128;

}  // namespace

struct StoreServer::Client {
  std::optional<Handshake> handshake;  ///< until it is accepted
  Descriptor socket;
  int rank = -1;
  std::vector<std::byte> in, out;
  std::optional<StoreRequest> waiting;  ///< a get() whose key is not there yet
  Deadline until;
  bool gone = false;
};

StoreServer::StoreServer(Descriptor listening, Identity self, std::string token,
                         Clock::duration leave_limit)
    : listening_(std::move(listening)),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      self_(std::move(self)),
      token_(std::move(token)),
      leave_limit_(leave_limit) {
  if (!wake_) {
    throw CommunicationError(cat("eventfd failed: ", error_text(errno), "."));
  }
  thread_ = std::jthread([this](const std::stop_token& stop) {
    ::pthread_setname_np(::pthread_self(), "yoke-store");
    serve(stop);
  });
}

StoreServer::~StoreServer() {
  if (std::uncaught_exceptions() > 0 && leave_limit_.load() > kLeaveLimitOfFailure) {
    leave_limit_ = kLeaveLimitOfFailure;
  }
  thread_.request_stop();
  wake();
}

void StoreServer::set(const std::string& key, const std::string& value) {
  table_.set(key, value);
  wake();
}

std::string StoreServer::get(const std::string& key, Deadline deadline) {
  return table_.get(key, deadline);
}

std::int64_t StoreServer::add(const std::string& key, std::int64_t amount) {
  auto sum = table_.add(key, amount);
  wake();
  return sum;
}

void StoreServer::wake() {
  std::uint64_t one = 1;
  // Fails only when the counter is full, and then the thread wakes anyway.
  [[maybe_unused]] auto written = ::write(wake_.number(), &one, sizeof one);
}

void StoreServer::serve(const std::stop_token& stop) {
  std::optional<Deadline> leave;
  std::vector<pollfd> polled;
  for (;;) {
    if (stop.stop_requested() && !leave) {
      leave = Deadline::after(leave_limit_.load());
      std::erase_if(clients_, [](const Client& client) { return client.handshake.has_value(); });
    }
    if (leave && (clients_.empty() || leave->passed())) {
      return;
    }
    polled.assign({{wake_.number(), POLLIN, 0}, {leave ? -1 : listening_.number(), POLLIN, 0}});
    for (const auto& client : clients_) {
      bool greeting = client.handshake.has_value();
      polled.push_back({greeting ? client.handshake->descriptor() : client.socket.number(),
                        greeting
                            ? client.handshake->events()
                            : static_cast<short>(client.out.empty() ? POLLIN : POLLIN | POLLOUT),
                        0});
    }
    auto next = next_event();
    int timeout = poll_milliseconds(leave && leave->at() < next.at() ? *leave : next);
    if (::poll(polled.data(), polled.size(), timeout) < 0 && errno != EINTR) {
      log_error("the store's server ends: poll failed: ", error_text(errno));
      return;
    }
    std::uint64_t count = 0;
    while (::read(wake_.number(), &count, sizeof count) > 0) {
    }
    std::size_t index = 2;
    for (auto& client : clients_) {
      auto happened = polled[index++].revents;
      if (client.handshake) {
        greet(client);
      } else if ((happened & (POLLIN | POLLHUP | POLLERR)) != 0) {
        read(client);
      }
    }
    // A set() of any client, or of this process, may be what others wait for.
    for (auto& client : clients_) {
      answer_waiting(client);
      write(client);
    }
    std::erase_if(clients_, [](const Client& client) { return client.gone; });
    if ((polled[1].revents & POLLIN) != 0) {
      admit();
    }
  }
}

Deadline StoreServer::next_event() const {
  auto next = Deadline::after(std::chrono::hours(1));
  auto sooner = [&next](Deadline other) { next = other.at() < next.at() ? other : next; };
  for (const auto& client : clients_) {
    if (client.handshake) {
      sooner(client.handshake->deadline());
    } else if (client.waiting) {
      sooner(client.until);
    }
  }
  return next;
}

void StoreServer::admit() {
  for (;;) {
    auto socket = accept_from(listening_.number());
    if (!socket) {
      return;
    }
    auto stranger = [](const Client& client) { return client.handshake.has_value(); };
    auto strangers = std::count_if(clients_.begin(), clients_.end(), stranger);
    if (static_cast<std::size_t>(strangers) >= kMostStrangers) {
      clients_.erase(std::find_if(clients_.begin(), clients_.end(), stranger));
    }
    clients_.emplace_back();
    clients_.back().handshake = Handshake::answer(std::move(socket), self_, token_);
  }
}

void StoreServer::greet(Client& client) {
  auto& handshake = *client.handshake;
  auto state = handshake.advance();
  if (state == Handshake::State::kAccepted) {
    client.rank = handshake.peer();
    client.socket = handshake.take_socket();
    client.handshake.reset();
  } else if (state == Handshake::State::kRefused) {
    // Ranks of other jobs look at this port while they search for theirs: no news.
    if (handshake.verdict() != Verdict::kElsewhere) {
      refusals_.refused(handshake.why());
    }
    client.gone = true;
  } else if (handshake.expired()) {
    refusals_.refused(cat(remote_text(handshake.descriptor()), " said nothing for ",
                          Seconds(kHandshakeLimit).count(), " s"));
    client.gone = true;
  }
}

void StoreServer::read(Client& client) {
  std::byte buffer[4096];
  for (;;) {
    auto got = ::recv(client.socket.number(), buffer, sizeof buffer, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      break;
    }
    if (got <= 0) {
      client.gone = true;
      return;
    }
    client.in.insert(client.in.end(), buffer, buffer + got);
  }
  try {
    while (auto body = first_message(client.in)) {
      auto request = decode_store_request(*body);
      if (!request || client.waiting) {
        return drop(client, "it broke the store's protocol");
      }
      client.in.erase(client.in.begin(), client.in.begin() + static_cast<std::ptrdiff_t>(
                                                                 kStoreLengthBytes + body->size()));
      handle(client, *request);
    }
  } catch (const Error& error) {
    drop(client, error.what());
  }
}

void StoreServer::handle(Client& client, const StoreRequest& request) {
  StoreResponse response;
  switch (request.operation) {
    case StoreOperation::kSet:
      table_.set(request.key, request.value);
      break;
    case StoreOperation::kAdd:
      response.number = table_.add(request.key, request.number);
      break;
    case StoreOperation::kGet:
      client.waiting = request;
      client.until = Deadline::after(
          std::chrono::milliseconds(std::clamp<std::int64_t>(request.number, 0, 86'400'000)));
      return;
  }
  auto bytes = encode(response);
  client.out.insert(client.out.end(), bytes.begin(), bytes.end());
}

void StoreServer::answer_waiting(Client& client) {
  if (!client.waiting || client.gone) {
    return;
  }
  auto value = table_.find(client.waiting->key);
  if (!value && !client.until.passed()) {
    return;
  }
  client.waiting.reset();
  auto bytes = encode(StoreResponse{.found = value.has_value(), .value = value.value_or("")});
  client.out.insert(client.out.end(), bytes.begin(), bytes.end());
}

void StoreServer::write(Client& client) {
  if (client.out.empty() || client.gone) {
    return;
  }
  auto sent = ::send(client.socket.number(), client.out.data(), client.out.size(), MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) {
    client.gone = true;
  } else if (sent > 0) {
    client.out.erase(client.out.begin(), client.out.begin() + sent);
  }
}

void StoreServer::drop(Client& client, const std::string& why) {
  log_warning("closed rank ", client.rank, "'s connection to the store: ", why, ".");
  client.gone = true;
}

}  // namespace yoke::net
