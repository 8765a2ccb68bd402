#include "yoke/sync/exchange.h"

#include "yoke/sync/network_exchange.h"
#include "yoke/sync/shared_exchange.h"

namespace yoke::sync {

std::unique_ptr<Exchange> Exchange::make(comm::Communicator& communicator,
                                         const tensor::ArenaLayout& layout,
                                         const ExchangeOptions& options) {
  if (communicator.transport() == comm::TransportKind::kSharedMemory &&
      (options.topology == comm::Topology::kAuto ||
       options.topology == comm::Topology::kFullMesh)) {
    return std::make_unique<SharedExchange>(communicator, layout, options);
  }
  return std::make_unique<NetworkExchange>(communicator, layout, options);
}

}  // namespace yoke::sync
