#include "yoke/elastic/agent.h"

#include <signal.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/exit_code.h"
#include "yoke/base/log.h"

namespace yoke::elastic {

using nlohmann::json;

namespace {
/// Ends that the coordinator may not have heard, or not have kept when it died.
constexpr std::size_t kEndsKept = 256;
/// A coordinator that dies so often at once will not live.
constexpr int kMostQuickRestarts = 5;
constexpr auto kQuick = std::chrono::seconds(1);
}  // namespace

Agent::Agent(AgentOptions options)
    : options_(std::move(options)),
      memory_kills_(net::out_of_memory_kills()),
      link_(options_.coordinator, options_.job, options_.token) {}

void Agent::start_coordinator() {
  coordinator_started_ = Clock::now();
  coordinator_ = &children_.start(options_.own_coordinator());
}

AgentOutcome Agent::run() {
  if (options_.own_coordinator) start_coordinator();
  const auto console_waits = [&] { return killed_by_signal_ == 0 && children_.console_waits(); };
  while (finish_.is_null() || children_.anyone_runs() || console_waits()) {
    if (killed_by_signal_ != 0 && !children_.anyone_runs()) break;
    if (finish_.is_null() && link_.advance()) greet();
    while (const auto message = link_.next()) hear(*message);
    start_due();
    link_.flush();
    pollfd link{.fd = link_.descriptor(), .events = 0, .revents = 0};
    if (link.fd >= 0) link.events = link_.events();
    children_.wait({&link, 1}, next_event());
    take_signals();
    reap();
    check_end();
  }
  AgentOutcome outcome;
  outcome.stop_signal = stop_signal_ != 0 ? stop_signal_ : killed_by_signal_;
  outcome.stdout_error = children_.console_out().error();
  if (killed_by_signal_ != 0) {
    outcome.exit_code = 128 + killed_by_signal_;
    return outcome;
  }
  outcome.exit_code = finish_.at("exit_code");
  outcome.cause = finish_.at("cause");
  outcome.why = finish_.at("why");
  const auto failed = failures_.find(finish_.at("worker").get<WorkerId>());
  if (failed != failures_.end()) outcome.failure = failed->second;
  return outcome;
}

std::optional<Deadline> Agent::next_event() const {
  Clock::time_point next = Clock::now() + std::chrono::seconds(1);
  for (const Start& start : starts_) next = std::min(next, start.at);
  if (!link_.connected() && finish_.is_null()) next = std::min(next, link_.next_try());
  if (kill_at_) next = std::min(next, kill_at_->at());
  return Deadline::after(std::max<Clock::duration>(next - Clock::now(), {}));
}

void Agent::greet() {
  json running = json::array();
  for (const auto& [id, worker] : workers_)
    running.push_back({{"worker", id}, {"slot", worker.slot}, {"pid", worker.child->pid}});
  link_.push({{"say", "agent"}, {"slots", options_.slots}, {"running", running}});
  for (const json& end : ends_) link_.push(end);
  if (stop_signal_ != 0) link_.push({{"say", "stop"}});
}

void Agent::start_due() {
  const auto now = Clock::now();
  for (auto start = starts_.begin(); start != starts_.end();) {
    if (start->at > now) {
      ++start;
      continue;
    }
    const auto [id, slot, at] = *start;
    start = starts_.erase(start);
    net::Children::Child* started = nullptr;
    try {
      started = &children_.start(options_.worker(id, slot));
    } catch (const Error& error) {
      // The others go on; whether it is tried again is the coordinator's to say.
      log_error("worker ", slot, " cannot be started: ", error.what());
      tell_end(id, {.rank = slot, .exit_code = exit_code_of(error), .last_lines = {error.what()}});
      continue;
    }
    auto& child = *started;
    workers_[id] = {.slot = slot, .child = &child};
    link_.push({{"say", "started"}, {"worker", id}, {"slot", slot}, {"pid", child.pid}});
  }
}

void Agent::hear(const json& message) {
  const std::string what = message["say"];
  try {
    if (what == "start") {
      if (killed_by_signal_ != 0) return;
      starts_.push_back({.worker = message.at("worker"),
                         .slot = message.at("slot"),
                         .at = Clock::now() + std::chrono::milliseconds(
                                                  message.at("after_ms").get<std::int64_t>())});
    } else if (what == "kill") {
      const auto found = workers_.find(message.at("worker").get<WorkerId>());
      if (found == workers_.end()) return;
      log_warning("worker ", found->second.slot, " (process ", found->second.child->pid,
                  ") is killed: ", message.at("why").get<std::string>());
      found->second.was_stopped = net::is_stopped(found->second.child->pid);
      found->second.was_dying = net::is_dying(found->second.child->pid);
      found->second.child->signal_group(SIGKILL);
    } else if (what == "leader") {
      show_leader(message.at("worker"));
    } else if (what == "finish") {
      finish_ = message;
      starts_.clear();
      const bool failed = finish_.at("worker").get<WorkerId>() >= 0;
      const auto grace = Deadline::after(failed ? options_.failure_grace : options_.stop_grace);
      if (!kill_at_ || grace.at() < kill_at_->at()) kill_at_ = grace;
    }
  } catch (const json::exception& error) {
    log_warning("the coordinator's message is not understood: ", error.what());
  }
}

void Agent::show_leader(WorkerId leader) {
  leader_ = leader;
  for (const auto& [id, worker] : workers_) {
    const bool leads = id == leader;
    worker.child->out->show(leads ? &children_.console_out() : nullptr);
    worker.child->err->show(leads ? &children_.console_err() : nullptr);
  }
}

void Agent::take_signals() {
  for (const int signal : children_.take_signals()) {
    if (stop_signal_ == 0 && signal != SIGQUIT) {
      stop_signal_ = signal;
      log_info(net::signal_name(signal), ": all workers finish their step and save; once more ",
               "kills them");
      link_.push({{"say", "stop"}});
      link_.flush();
      // Before the first generation there is nothing that could be saved: the workers end by
      // themselves when they find that out.
      if (leader_ < 0) {
        for (const auto& [id, worker] : workers_) {
          worker.child->told_to_end = true;
          worker.child->signal_group(signal == SIGUSR1 ? SIGTERM : signal);
        }
      }
      if (!kill_at_) kill_at_ = Deadline::after(options_.stop_grace);
    } else if (signal != SIGUSR1 && killed_by_signal_ == 0) {
      killed_by_signal_ = signal;
      log_warning(stop_signal_ == 0 ? "" : "a second signal, ", net::signal_name(signal),
                  ": killing all workers");
      starts_.clear();
      children_.pass_on(SIGKILL);
    }
  }
}

void Agent::reap() {
  for (auto& [child, end] : children_.reap(stop_signal_)) {
    if (child == coordinator_) {
      coordinator_ = nullptr;
      // Its last words may lie in the socket.
      link_.advance();
      while (const auto message = link_.next()) hear(*message);
      if (!finish_.is_null() || killed_by_signal_ != 0) continue;
      coordinator_restarts_ =
          Clock::now() - coordinator_started_ < kQuick ? coordinator_restarts_ + 1 : 0;
      log_warning("the coordinator has ended (",
                  end.signal != 0 ? net::signal_name(end.signal) : cat("exit code ", end.exit_code),
                  "); it is started again, and the workers wait for it");
      if (coordinator_restarts_ > kMostQuickRestarts) {
        finish_ = {{"exit_code", kExitInternal},
                   {"worker", -1},
                   {"cause", "coordinator"},
                   {"why", "the coordinator cannot live"}};
        children_.pass_on(SIGKILL);
      } else {
        start_coordinator();
      }
      continue;
    }
    for (const auto& [id, worker] : workers_) {
      if (worker.child != child) continue;
      ended(id, end);
      break;
    }
  }
  children_.forget_ended();
}

void Agent::ended(WorkerId id, const net::ProcessEnd& end) {
  const Worker worker = workers_.at(id);
  workers_.erase(id);
  const long kills = net::out_of_memory_kills();
  const bool memory = end.signal == SIGKILL && kills > memory_kills_;
  memory_kills_ = kills;
  net::ProcessFailure failure{.rank = worker.slot,
                              .pid = end.pid,
                              .exit_code = end.exit_code,
                              .signal = end.signal,
                              .stopped = worker.was_stopped,
                              .memory_was_short = memory,
                              .last_lines = {}};
  const auto& lines = worker.child->last.lines();
  failure.last_lines.assign(lines.begin(), lines.end());
  tell_end(id, failure, worker.was_dying);
  // They stopped before there was anything to save.
  if (stop_signal_ != 0 && leader_ < 0 && workers_.empty() && killed_by_signal_ == 0) {
    killed_by_signal_ = stop_signal_;
    children_.pass_on(SIGKILL);
  }
}

void Agent::tell_end(WorkerId id, const net::ProcessFailure& failure, bool was_dying) {
  json message{{"say", "ended"},
               {"worker", id},
               {"exit_code", failure.exit_code},
               {"signal", failure.signal},
               {"stopped", failure.stopped},
               {"dying", was_dying},
               {"out_of_memory", failure.memory_was_short}};
  link_.push(message);
  link_.flush();
  ends_.push_back(std::move(message));
  failures_[id] = failure;
  if (ends_.size() > kEndsKept) ends_.pop_front();
  if (failures_.size() > kEndsKept) failures_.erase(failures_.begin());
}

void Agent::check_end() {
  const bool over = !finish_.is_null();
  if (!kill_at_ || !kill_at_->passed() || !children_.anyone_runs()) return;
  for (const auto& [id, worker] : workers_) {
    log_warning("worker ", worker.slot, " (process ", worker.child->pid, ") has not ended within ",
                Seconds(kill_at_->span()).count(), " s: killing it");
  }
  if (!over) killed_by_signal_ = stop_signal_;
  children_.pass_on(SIGKILL);
  kill_at_.reset();
}

}  // namespace yoke::elastic
