#include "yoke/net/supervisor.h"

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/log.h"

namespace yoke::net {
namespace {

double seconds_of(Clock::duration span) {
  return Seconds(span).count();
}

bool is_failure(const ProcessEnd& end) {
  return !end.asked_for && end.exit_code != kExitOk && end.exit_code != kExitSaved;
}

}  // namespace

Supervisor::Supervisor(const SupervisorOptions& options)
    : options_(options), memory_kills_before_(out_of_memory_kills()) {}

SupervisorOutcome Supervisor::run() {
  // A console that nobody reads does not keep us once somebody has asked twice to end.
  auto console_waits = [&] { return killed_by_signal_ == 0 && children_.console_waits(); };
  while (children_.anyone_runs() || console_waits()) {
    std::optional<Deadline> until;
    for (const auto& deadline : {decide_at_, kill_at_}) {
      if (deadline && (!until || deadline->at() < until->at())) until = deadline;
    }
    children_.wait({}, until);
    read_signals();
    for (auto& [child, end] : children_.reap(stop_signal_)) ended(end);
    check_deadlines();
  }
  return outcome();
}

void Supervisor::read_signals() {
  for (int signal : children_.take_signals()) {
    if (signal == SIGUSR1) {
      for (auto& child : children_.all()) {
        if (child->running) ::kill(child->pid, SIGUSR1);
      }
    } else if (stop_signal_ == 0 && signal != SIGQUIT) {
      stop_signal_ = signal;
      log_info("passing ", signal_name(signal), " on to all ranks; once more kills them");
      children_.pass_on(signal);
      auto grace = Deadline::after(options_.stop_grace);
      if (!kill_at_) kill_at_ = grace;
    } else if (killed_by_signal_ == 0) {
      killed_by_signal_ = signal;
      log_warning(stop_signal_ == 0 ? "" : "a second signal, ", signal_name(signal),
                  ": killing all ranks");
      children_.pass_on(SIGKILL);
    }
  }
}

void Supervisor::ended(const ProcessEnd& end) {
  ends_.push_back(end);
  if (is_failure(end) && !decide_at_ && !failure_) decide_at_ = Deadline::after(options_.settle);
}

void Supervisor::check_deadlines() {
  if (decide_at_ && !failure_ && (decide_at_->passed() || !children_.anyone_runs())) {
    if (only_followers() && !waited_for_cause_) {
      waited_for_cause_ = true;
      decide_at_ = Deadline::after(options_.settle_of_followers);
    } else {
      decide();
    }
  } else if (waited_for_cause_ && !failure_ && !only_followers()) {
    decide();
  }
  if (kill_at_ && kill_at_->passed() && children_.anyone_runs()) {
    for (auto& child : children_.all()) {
      if (!child->running) continue;
      log_warning("rank ", child->rank, " (pid ", child->pid, ") has not ended within ",
                  seconds_of(kill_at_->span()), " s: killing it");
    }
    children_.pass_on(SIGKILL);
    kill_at_.reset();
  }
}

const ProcessEnd* Supervisor::cause() const {
  const ProcessEnd* follower = nullptr;
  for (const auto& end : ends_) {
    if (!is_failure(end)) continue;
    if (end.exit_code != kExitPeerLost) return &end;
    if (follower == nullptr) follower = &end;
  }
  return follower;
}

bool Supervisor::only_followers() const {
  bool unclear = children_.anyone_runs() && cause()->exit_code == kExitPeerLost;
  return unclear &&
         std::none_of(children_.all().begin(), children_.all().end(),
                      [](const auto& child) { return child->running && is_stopped(child->pid); });
}

void Supervisor::decide() {
  const ProcessEnd* end = cause();
  YOKE_ENSURE(end != nullptr, "a failure without a failed rank");
  decide_at_.reset();
  failure_.emplace();
  failure_->rank = end->rank;
  failure_->pid = end->pid;
  failure_->exit_code = end->exit_code;
  failure_->signal = end->signal;
  for (auto& child : children_.all()) {
    if (!child->running || !is_stopped(child->pid)) continue;
    if (end->exit_code == kExitPeerLost && !failure_->stopped) {
      failure_->rank = child->rank;
      failure_->pid = child->pid;
      failure_->stopped = true;
    }
    // It cannot act on SIGTERM, and must not wake up and write.
    child->told_to_end = true;
    child->signal_group(SIGKILL);
  }
  failure_->memory_was_short =
      end->signal == SIGKILL && out_of_memory_kills() > memory_kills_before_;
  for (auto& child : children_.all()) {
    if (child->rank != failure_->rank) continue;
    failure_->last_lines.assign(child->last.lines().begin(), child->last.lines().end());
  }
  if (children_.anyone_runs()) {
    children_.pass_on(SIGTERM);
    auto grace = Deadline::after(options_.failure_grace);
    if (!kill_at_ || grace.left() < kill_at_->left()) kill_at_ = grace;
  }
}

SupervisorOutcome Supervisor::outcome() {
  SupervisorOutcome result;
  result.stop_signal = stop_signal_ != 0 ? stop_signal_ : killed_by_signal_;
  result.stdout_error = children_.console_out().error();
  result.failure = failure_;
  result.ends = ends_;
  auto some = [this](auto property) { return std::any_of(ends_.begin(), ends_.end(), property); };
  if (killed_by_signal_ != 0) {
    result.exit_code = 128 + killed_by_signal_;
    result.failure.reset();
  } else if (failure_) {
    result.exit_code = failure_->exit_code;
  } else if (some([](const ProcessEnd& end) { return end.asked_for; })) {
    result.exit_code = 128 + stop_signal_;
  } else if (some([](const ProcessEnd& end) { return end.exit_code == kExitSaved; })) {
    result.exit_code = kExitSaved;
  }
  return result;
}

}  // namespace yoke::net
