#include "yoke/net/rendezvous.h"

#include <fcntl.h>

#include <vector>

#include "yoke/base/error.h"
#include "yoke/net/store_client.h"
#include "yoke/net/store_server.h"

namespace yoke::net {
namespace {

constexpr int kCandidatePorts = 32;

std::uint16_t candidate_port(const Place& place, int index) {
  int port = place.master_port + index;
  // At the end of the range, count on from the other side.
  return static_cast<std::uint16_t>(port <= 65535 ? port : place.master_port - (port - 65535));
}

Descriptor adopt(int descriptor) {
  Descriptor listening(descriptor);
  int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0 || ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) != 0 ||
      ::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) {
    throw CommunicationError(
        cat("the launcher's descriptor ", descriptor, " is no socket: ", error_text(errno), "."));
  }
  return listening;
}

Descriptor bind_first_free(const Place& place, Deadline deadline) {
  auto master = resolve(place.master_address, 0, deadline);
  // Ranks of this machine alone need no port that others can reach. A master name that this machine
  // itself resolves to the loopback may mean another address elsewhere.
  bool local = place.local_size == place.size && master.is_loopback();
  auto where = local ? master : master.any();
  for (int i = 1; i <= kCandidatePorts; ++i) {
    if (auto listening = try_listen(where.with_port(candidate_port(place, i)))) {
      return listening;
    }
  }
  throw CommunicationError(cat("rank 0 found no free port from ", candidate_port(place, 1), " to ",
                               candidate_port(place, kCandidatePorts), " at ", where.host(),
                               ". Choose another MASTER_PORT."));
}

std::vector<Address> candidates_of(const Place& place, Deadline deadline) {
  auto master = resolve(place.master_address, 0, deadline);
  std::vector<Address> candidates;
  for (int i = place.launcher == "yoke" ? 0 : 1; i <= kCandidatePorts; ++i) {
    candidates.push_back(master.with_port(candidate_port(place, i)));
  }
  return candidates;
}

std::string here_key(int rank) {
  return cat("yoke/here/", rank);
}

void await_everyone(Store& store, const Place& place, Deadline deadline) {
  // Two jobs on one port without a name, or a rank that was started twice.
  if (store.add(cat("yoke/come/", place.rank), 1) > 1) {
    throw JoinRefused(
        cat("rank ", place.rank, " of job '", place.job,
            "' is there already: another process has come as that rank. Two jobs at "
            "one time need two MASTER_PORTs, 33 apart, or a TORCHELASTIC_RUN_ID each."));
  }
  store.set(here_key(place.rank), "");
  if (store.add("yoke/arrived", 1) == place.size) {
    store.set("yoke/everyone", "");
  }
  try {
    store.get("yoke/everyone", deadline);
  } catch (const Timeout&) {
    std::vector<int> missing;
    std::string names;
    for (int rank = 0; rank < place.size; ++rank) {
      try {
        store.get(here_key(rank), Deadline::after(Clock::duration::zero()));
      } catch (const Timeout&) {
        missing.push_back(rank);
        names += cat(names.empty() ? "" : ", ", rank);
      }
    }
    if (missing.empty()) {
      return;  // the last one came at this very moment
    }
    throw Timeout("rendezvous", missing,
                  cat("of ", place.size, " ranks of job '", place.job,
                      "' these did not come within ", Seconds(deadline.span()).count(),
                      " s: ", names, ". Look at their logs, or at their hosts."));
  }
}

}  // namespace

std::shared_ptr<Store> open_store(const Place& place, const RendezvousOptions& options) {
  if (place.size == 1) {
    return make_memory_store();
  }
  auto deadline = Deadline::after(options.timeout, options.cancelled);
  auto token = token_of(options.token, place.job);
  Identity self{.job = place.job,
                .purpose = "store",
                .generation = place.generation,
                .rank = place.rank,
                .size = place.size};
  std::shared_ptr<Store> store;
  if (!options.served_at.empty()) {
    Address server;
    auto connection =
        connect_to_store({resolve(options.served_at, deadline)}, self, token, deadline, server);
    store = std::make_shared<StoreClient>(std::move(connection), server, self, token);
  } else if (place.rank == 0) {
    auto listening = options.listening_descriptor >= 0 ? adopt(options.listening_descriptor)
                                                       : bind_first_free(place, deadline);
    store = std::make_shared<StoreServer>(std::move(listening), self, token);
  } else {
    Address server;
    auto connection =
        connect_to_store(candidates_of(place, deadline), self, token, deadline, server);
    store = std::make_shared<StoreClient>(std::move(connection), server, self, token);
  }
  await_everyone(*store, place, deadline);
  return store;
}

}  // namespace yoke::net
