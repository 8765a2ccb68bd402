#pragma once

#include <atomic>
#include <filesystem>
#include <list>
#include <memory>
#include <string>

#include "yoke/elastic/journal.h"
#include "yoke/elastic/message_stream.h"
#include "yoke/elastic/roster.h"
#include "yoke/net/handshake.h"
#include "yoke/net/store_server.h"

namespace yoke::elastic {

struct CoordinatorOptions {
  std::string job;
  std::string token;
  std::filesystem::path journal;
  RosterOptions roster;
};

/// What clients of a coordinator prove to look for.
net::Identity coordinator_identity(const std::string& job);

/// The embedded coordinator: one process, one thread, one poll loop around a Roster. Workers,
/// agents and the commands of a person connect to it and speak JSON (docs/elastic.md has the
/// messages). It serves the store of the generation that stands. What it decides it journals first,
/// so that a restarted one goes on where it was: clients reconnect, and a generation that trains is
/// not disturbed.
class Coordinator {
 public:
  /// `listening` has been bound and listens; whoever restarts coordinators keeps it open.
  Coordinator(net::Descriptor listening, const CoordinatorOptions& options);
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  /// Serves until the run is over and its agents have been told, or `end` is true.
  void serve(const std::atomic<bool>& end);

 private:
  struct Client;
  void admit();
  void greet(Client& client);
  void hear(Client& client);
  void handle(Client& client, const nlohmann::json& message);
  void handle_worker(Client& client, const std::string& say, const nlohmann::json& message);
  void handle_agent(Client& client, const std::string& say, const nlohmann::json& message);
  void handle_request(Client& client, const nlohmann::json& message);
  nlohmann::json status() const;
  void drop(Client& client);
  void act();
  void open(const OpenGeneration& opened);
  void close_store();
  Client* worker(WorkerId id);
  void tell(WorkerId id, const nlohmann::json& message);
  void tell_agents(const nlohmann::json& message);

  net::Descriptor listening_;
  CoordinatorOptions options_;
  net::Address here_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<Roster> roster_;
  std::list<Client> clients_;
  AgentId next_agent_ = 0;
  std::unique_ptr<net::StoreServer> store_;
  std::string store_at_;
  nlohmann::json finish_;  ///< what agents are told in the end; null before
  net::RefusalLog refusals_{"the coordinator"};
};

}  // namespace yoke::elastic
