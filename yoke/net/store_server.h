#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "yoke/net/handshake.h"
#include "yoke/net/socket.h"
#include "yoke/net/store.h"
#include "yoke/net/store_protocol.h"
#include "yoke/net/store_table.h"

namespace yoke::net {

/// The store as rank 0 holds it: a table, and a thread that serves the others. Strangers at the
/// port cost nobody anything: they are shown the door after kHandshakeLimit, and the others are
/// served meanwhile. Destroying it waits for the clients to leave first, `leave_limit` at most:
/// their last words may still be a `set` that another waits for. With 0 it hangs up on them at
/// once.
class StoreServer final : public Store {
 public:
  /// `listening` has been bound and listens.
  StoreServer(Descriptor listening, Identity self, std::string token,
              Clock::duration leave_limit = std::chrono::seconds(5));
  ~StoreServer() override;

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Deadline deadline) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override;

 private:
  struct Client;
  void serve(const std::stop_token& stop);
  void admit();
  void greet(Client& client);
  void read(Client& client);
  void handle(Client& client, const StoreRequest& request);
  void answer_waiting(Client& client);
  void write(Client& client);
  void drop(Client& client, const std::string& why);
  Deadline next_event() const;
  void wake();

  Descriptor listening_;
  Descriptor wake_;  ///< eventfd: the table has changed, or the thread is to end
  Identity self_;
  std::string token_;
  StoreTable table_;
  std::atomic<Clock::duration> leave_limit_;
  std::list<Client> clients_;         ///< the thread's alone
  RefusalLog refusals_{"the store"};  ///< the thread's alone
  std::jthread thread_;               ///< last: it uses all of the above
};

}  // namespace yoke::net
