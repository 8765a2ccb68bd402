#include "yoke/elastic/coordinator.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/base/log.h"
#include "yoke/elastic/wire_json.h"

namespace yoke::elastic {

namespace {

using nlohmann::json;

/// How often time passes for the roster.
constexpr auto kTick = std::chrono::milliseconds(50);
constexpr std::size_t kMostStrangers = 128;

}  // namespace

struct Coordinator::Client {
  std::optional<net::Handshake> handshake;  ///< until it is accepted
  std::optional<MessageStream> stream;
  WorkerId worker = -1;
  AgentId agent = -1;
  bool gone = false;

  int descriptor() const { return handshake ? handshake->descriptor() : stream->descriptor(); }
  short events() const { return handshake ? handshake->events() : stream->events(); }
};

net::Identity coordinator_identity(const std::string& job) {
  return {.job = job, .purpose = "coordinator", .generation = 0, .rank = 0, .size = 1};
}

Coordinator::Coordinator(net::Descriptor listening, const CoordinatorOptions& options)
    : listening_(std::move(listening)),
      options_(options),
      here_(net::own_address(listening_.number())) {
  const auto record = Journal::newest(options_.journal, options_.job);
  try {
    journal_ = std::make_unique<Journal>(options_.journal);
  } catch (const IoError& error) {
    log_warning("the coordinator has no journal, and would not survive its own restart: ",
                error.what());
  }
  if (!record) {
    roster_ = std::make_unique<Roster>(options_.roster);
    return;
  }
  log_info("the coordinator goes on in generation ", record->generation);
  roster_ = std::make_unique<Roster>(options_.roster, record->generation, record->next_worker);
  roster_->recover(record->members, record->wanted, record->reached, Clock::now());
}

Coordinator::~Coordinator() = default;

void Coordinator::serve(const std::atomic<bool>& end) {
  std::vector<pollfd> polled;
  std::optional<Deadline> farewell;
  while (!end.load()) {
    polled.assign(1, {listening_.number(), POLLIN, 0});
    for (const Client& client : clients_)
      polled.push_back({client.descriptor(), client.events(), 0});
    if (::poll(polled.data(), polled.size(), static_cast<int>(kTick.count())) < 0 &&
        errno != EINTR) {
      throw CommunicationError(cat("poll failed: ", net::error_text(errno), "."));
    }
    for (Client& client : clients_) client.handshake ? greet(client) : hear(client);
    std::erase_if(clients_, [](const Client& client) { return client.gone; });
    admit();
    roster_->tick(Clock::now());
    act();
    if (finish_.is_null()) continue;
    if (!farewell) farewell = Deadline::after(std::chrono::seconds(2));
    const bool all_told = std::ranges::all_of(
        clients_, [](const Client& client) { return !client.stream || client.stream->drained(); });
    if (all_told || farewell->passed()) return;
  }
}

void Coordinator::admit() {
  while (auto socket = net::accept_from(listening_.number())) {
    const auto stranger = [](const Client& client) { return client.handshake.has_value(); };
    if (std::ranges::count_if(clients_, stranger) >= static_cast<long>(kMostStrangers))
      clients_.erase(std::ranges::find_if(clients_, stranger));
    clients_.emplace_back();
    clients_.back().handshake = net::Handshake::answer(
        std::move(socket), coordinator_identity(options_.job), options_.token);
  }
}

void Coordinator::greet(Client& client) {
  auto& handshake = *client.handshake;
  switch (handshake.advance()) {
    case net::Handshake::State::kAccepted:
      client.stream.emplace(handshake.take_socket());
      client.handshake.reset();
      return hear(client);
    case net::Handshake::State::kRefused:
      if (handshake.verdict() != net::Verdict::kElsewhere) refusals_.refused(handshake.why());
      client.gone = true;
      return;
    case net::Handshake::State::kRunning:
      client.gone = handshake.expired();
  }
}

void Coordinator::hear(Client& client) {
  const bool open = client.stream->advance();
  try {
    while (const auto message = client.stream->next()) {
      handle(client, *message);
      act();
    }
  } catch (const json::exception& error) {
    log_warning("the coordinator does not understand a client: ", error.what());
    return drop(client);
  }
  if (!open || !client.stream->advance()) drop(client);
}

void Coordinator::drop(Client& client) {
  if (client.gone) return;
  client.gone = true;
  // A worker may come back: its silence is judged, not its connection. An agent too, but nothing
  // can be started through it now.
  if (client.agent >= 0) roster_->agent_left(client.agent, Clock::now());
}

void Coordinator::handle(Client& client, const json& message) {
  const std::string say = message["say"];
  if (say == "worker") {
    client.worker = message.at("worker");
    for (Client& other : clients_) {
      // An old connection of the same worker that nobody has closed yet.
      if (&other != &client && other.worker == client.worker) other.gone = true;
    }
    roster_->worker_came(client.worker, message.at("generation"), Clock::now());
    client.stream->push({{"say", "welcome"}, {"generation", roster_->generation()}});
  } else if (say == "agent") {
    client.agent = next_agent_++;
    for (const auto& child : message.at("running")) {
      roster_->worker_started(child.at("worker"), client.agent, child.at("slot"), child.at("pid"),
                              Clock::now());
    }
    roster_->agent_came(client.agent, message.at("slots"), Clock::now());
  } else if (say == "request") {
    handle_request(client, message);
  } else if (client.worker >= 0) {
    handle_worker(client, say, message);
  } else if (client.agent >= 0) {
    handle_agent(client, say, message);
  }
}

void Coordinator::handle_worker(Client& client, const std::string& say, const json& message) {
  const auto now = Clock::now();
  if (say == "beat") {
    roster_->beat(client.worker, beat_from(message), now);
    client.stream->push({{"say", "ack"}, {"generation", roster_->generation()}});
  } else if (say == "ready") {
    std::optional<Break> why;
    if (message.contains("lost"))
      why = Break{.lost_rank = message["lost"], .message = message.at("message")};
    roster_->ready(client.worker, message.at("generation"),
                   {.live = message.at("live"), .step = message.at("step")}, why, now);
  } else if (say == "leave") {
    roster_->leaving(client.worker, message.at("cause"), now);
  } else if (say == "failed") {
    roster_->failed(client.worker, message.at("step"));
  } else if (say == "noted") {
    roster_->noted(message.at("generation"));
  } else if (say == "done") {
    roster_->done(client.worker, message.at("finished"));
  }
}

void Coordinator::handle_agent(Client& client, const std::string& say, const json& message) {
  const auto now = Clock::now();
  if (say == "started") {
    roster_->worker_started(message.at("worker"), client.agent, message.at("slot"),
                            message.at("pid"), now);
  } else if (say == "ended") {
    roster_->worker_ended(message.at("worker"),
                          {.exit_code = message.at("exit_code"),
                           .signal = message.at("signal"),
                           .stopped = message.at("stopped"),
                           .dying = message.at("dying"),
                           .out_of_memory = message.at("out_of_memory")},
                          now);
  } else if (say == "stop") {
    roster_->stop();
  }
}

void Coordinator::handle_request(Client& client, const json& message) {
  const std::string what = message.at("what");
  json answer{{"say", "answer"}};
  const auto refuse = [&](const std::string& why) { answer["error"] = why; };
  if (what == "status") {
    answer["status"] = status();
  } else if (what == "resize") {
    const int workers = message.at("workers");
    if (workers < options_.roster.min_workers || workers > 4096) {
      refuse(cat("the run takes ", options_.roster.min_workers, " to 4096 workers, not ", workers,
                 "."));
    } else {
      roster_->resize(workers, Clock::now());
    }
  } else if (what == "leave") {
    const int rank = message.at("rank");
    WorkerId found = -1;
    for (const auto& [id, worker] : roster_->workers()) {
      if (worker.rank == rank && worker.phase == Roster::Worker::Phase::kRunning) found = id;
    }
    if (found < 0) {
      refuse(cat("the run has no rank ", rank, " now."));
    } else if (roster_->wanted() <= std::max(1, options_.roster.min_workers)) {
      refuse(cat("rank ", rank, " cannot leave: ", roster_->wanted() - 1,
                 " workers would be left, and the run needs ",
                 std::max(1, options_.roster.min_workers), ". Stop it instead (Ctrl-C)."));
    } else {
      roster_->resize_without(found, Clock::now());
    }
  } else {
    refuse(cat("this coordinator does not know \"", what, "\"."));
  }
  client.stream->push(answer);
}

json Coordinator::status() const {
  json workers = json::array();
  const auto now = Clock::now();
  for (const auto& [id, worker] : roster_->workers()) {
    constexpr const char* kPhases[] = {"starting", "ready", "running", "done"};
    std::string phase = kPhases[static_cast<int>(worker.phase)];
    if (!worker.leaving.empty()) phase = "leaving";
    if (!worker.doomed.empty()) phase = "lost";
    workers.push_back({{"worker", id},
                       {"slot", worker.slot},
                       {"rank", worker.rank < 0 ? json() : json(worker.rank)},
                       {"pid", worker.pid},
                       {"phase", phase},
                       {"step", worker.beat.step},
                       {"section", name_of(worker.beat.section)},
                       {"silent_ms", std::chrono::duration_cast<std::chrono::milliseconds>(
                                         std::max<Clock::duration>(now - worker.last_sign, {}))
                                         .count()}});
  }
  json changes = json::array();
  for (const Change& change : roster_->last_changes()) changes.push_back(to_json(change));
  return {{"job", options_.job},         {"generation", roster_->generation()},
          {"wanted", roster_->wanted()}, {"running", roster_->running()},
          {"step", roster_->reached()},  {"refused", roster_->refused()},
          {"changes", changes},          {"workers", workers}};
}

Coordinator::Client* Coordinator::worker(WorkerId id) {
  for (Client& client : clients_) {
    if (client.worker == id && !client.gone && client.stream) return &client;
  }
  return nullptr;
}

void Coordinator::tell(WorkerId id, const json& message) {
  // One that is not connected hears it when it has come back: from the generation of its welcome.
  if (Client* client = worker(id)) client->stream->push(message);
}

void Coordinator::tell_agents(const json& message) {
  for (Client& client : clients_) {
    if (client.agent >= 0 && !client.gone) client.stream->push(message);
  }
}

void Coordinator::act() {
  for (const Action& action : roster_->take_actions()) {
    if (const auto* start = std::get_if<StartWorker>(&action)) {
      for (Client& client : clients_) {
        if (client.agent != start->agent || client.gone) continue;
        client.stream->push(
            {{"say", "start"},
             {"worker", start->worker},
             {"slot", start->slot},
             {"after_ms",
              std::chrono::duration_cast<std::chrono::milliseconds>(start->after).count()}});
      }
    } else if (const auto* kill = std::get_if<KillWorker>(&action)) {
      tell_agents({{"say", "kill"}, {"worker", kill->worker}, {"why", kill->why}});
    } else if (const auto* abort = std::get_if<AbortGeneration>(&action)) {
      for (const WorkerId id : abort->workers) {
        tell(id, {{"say", "abort"}, {"generation", abort->generation}, {"reason", abort->reason}});
      }
      close_store();
    } else if (const auto* change = std::get_if<AskForChange>(&action)) {
      for (const WorkerId id : change->workers)
        tell(id, {{"say", "change"}, {"generation", roster_->generation()}});
    } else if (const auto* dismiss = std::get_if<Dismiss>(&action)) {
      tell(dismiss->worker, {{"say", "dismiss"}});
    } else if (const auto* stop = std::get_if<StopAll>(&action)) {
      for (const WorkerId id : stop->workers) tell(id, {{"say", "stop"}});
    } else if (const auto* opened = std::get_if<OpenGeneration>(&action)) {
      open(*opened);
    } else if (const auto* finish = std::get_if<Finish>(&action)) {
      finish_ = {{"say", "finish"},
                 {"exit_code", finish->exit_code},
                 {"worker", finish->worker},
                 {"cause", finish->cause},
                 {"why", finish->why}};
      tell_agents(finish_);
    }
  }
  for (Client& client : clients_) {
    if (client.stream && !client.gone && !client.stream->drained() && !client.stream->advance())
      drop(client);
  }
}

void Coordinator::close_store() {
  // Whoever waits in it learns at once that this generation is over.
  store_.reset();
}

void Coordinator::open(const OpenGeneration& opened) {
  close_store();
  const int size = static_cast<int>(opened.members.size());
  if (journal_) {
    try {
      journal_->append(options_.job, {.generation = opened.generation,
                                      .members = opened.members,
                                      .next_worker = roster_->next_worker(),
                                      .wanted = roster_->wanted(),
                                      .reached = opened.reached});
    } catch (const IoError& error) {
      log_warning("the coordinator's journal is not written (", error.what(),
                  "); the run goes on, but would not survive a restart of its coordinator");
      journal_.reset();
    }
  }
  auto socket = net::listen_on(here_.with_port(0));
  store_at_ = net::own_address(socket.number()).text();
  store_ = std::make_unique<net::StoreServer>(std::move(socket),
                                              net::Identity{.job = options_.job,
                                                            .purpose = "store",
                                                            .generation = opened.generation,
                                                            .rank = 0,
                                                            .size = size},
                                              options_.token, Clock::duration::zero());
  json changes = json::array();
  for (const Change& change : opened.changes) changes.push_back(to_json(change));
  const auto age =
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - opened.since);
  for (int rank = 0; rank < size; ++rank) {
    tell(opened.members[static_cast<std::size_t>(rank)], {{"say", "view"},
                                                          {"generation", opened.generation},
                                                          {"rank", rank},
                                                          {"size", size},
                                                          {"store", store_at_},
                                                          {"changes", changes},
                                                          {"age_us", age.count()},
                                                          {"anyone_live", opened.anyone_live},
                                                          {"reached", opened.reached}});
  }
  tell_agents({{"say", "leader"}, {"worker", opened.members.front()}});
}

}  // namespace yoke::elastic
