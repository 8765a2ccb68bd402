#include <utility>

#include "yoke/base/error.h"
#include "yoke/comm/communicator.h"
#include "yoke/comm/group_communicator.h"
#include "yoke/comm/message_backend.h"
#include "yoke/comm/shm/backend.h"
#include "yoke/net/shm/region.h"
#include "yoke/net/tcp/transport.h"

namespace yoke::comm {
namespace {

/// The first rank that is on another host than this one, or -1. Collective.
int rank_elsewhere(const World& world, const std::string& name, Deadline deadline) {
  if (world.size() == 1 || world.ranks_are_threads()) return -1;
  const auto key = [&](int rank) { return cat(name, "/host/", rank); };
  const std::string here = net::host_identity();
  world.store().set(key(world.rank()), here);
  int elsewhere = -1;
  for (int rank = 0; rank < world.size(); ++rank) {
    try {
      if (world.store().get(key(rank), deadline) != here && elsewhere < 0) elsewhere = rank;
    } catch (const Timeout& timeout) {
      throw Timeout("create communicator", {rank},
                    cat("rank ", rank, " did not come to make communicator \"", name,
                        "\": ", timeout.what()));
    }
  }
  return elsewhere;
}

}  // namespace

std::unique_ptr<Communicator> Communicator::create(const World& world,
                                                   const CommunicatorOptions& options) {
  const Deadline deadline = Deadline::after(options.timeout, world.cancelled());
  // A name may be used again; the n-th of a name on one rank is the n-th on all.
  const auto nth = world.store().add(
      cat("comm/", options.name, "/made/", world.generation(), "/", world.rank()), 1);
  const std::string name = cat("comm/", options.name, "/", world.generation(), "/", nth);

  TransportKind transport = options.transport;
  if (transport != TransportKind::kTcp) {
    // From any rank on another host the others look foreign too, so all ranks decide alike.
    const int elsewhere = rank_elsewhere(world, name, deadline);
    if (elsewhere >= 0 && transport == TransportKind::kSharedMemory) {
      throw ConfigError(cat("transport = \"shm\", but rank ", elsewhere,
                            " is not on the host of rank ", world.rank(),
                            ", or in another container. Use transport = \"auto\" or \"tcp\"."));
    }
    transport = elsewhere < 0 ? TransportKind::kSharedMemory : TransportKind::kTcp;
  }

  std::unique_ptr<Backend> backend;
  if (transport == TransportKind::kSharedMemory) {
    backend = std::make_unique<ShmBackend>(world.place(), world.shared_memory(), name, deadline);
  } else {
    const net::TcpOptions tcp{.token = world.token(),
                              .connect_timeout = options.timeout,
                              .user_timeout = options.user_timeout,
                              .bind_address = {},
                              .cancelled = world.cancelled()};
    backend = std::make_unique<MessageBackend>(
        net::make_tcp_transport(world.place(), world.store(), name, tcp));
  }
  // Nobody goes on before all are there: a rank that fails in its first call would otherwise fail
  // this one on others.
  backend->barrier({.tag = {.operation = static_cast<std::uint8_t>(Operation::kBarrier)},
                    .topology = backend->choose(Operation::kBarrier, Topology::kAuto, 0),
                    .deadline = deadline});
  return std::make_unique<GroupCommunicator>(world, options, transport, std::move(backend));
}

}  // namespace yoke::comm
