#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "yoke/net/handshake.h"
#include "yoke/net/socket.h"
#include "yoke/net/store.h"
#include "yoke/net/store_protocol.h"

namespace yoke::net {

/// The store as the other ranks see it. A get() may wait long, so each call that finds all
/// connections busy opens one more. When the server is gone, calls throw PeerLost of rank 0.
class StoreClient final : public Store {
 public:
  /// `first` has passed the handshake with the server at `server`.
  StoreClient(Descriptor first, const Address& server, Identity self, std::string token);

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Deadline deadline) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override;

 private:
  StoreResponse ask(const StoreRequest& request, Deadline deadline);
  Descriptor idle_connection(Deadline deadline);

  const Address server_;
  const Identity self_;
  const std::string token_;
  std::mutex mutex_;
  std::vector<Descriptor> idle_;  ///< guarded by mutex_
};

/// Connects to one of `candidates` that serves this job, trying all of them at once, again and
/// again until the deadline: Timeout says what each one did. Throws JoinRefused at once where the
/// server proves that it belongs to a later generation, or to a world of another size. Returns the
/// connection; `server` becomes its address.
Descriptor connect_to_store(const std::vector<Address>& candidates, const Identity& self,
                            const std::string& token, Deadline deadline, Address& server);

}  // namespace yoke::net
