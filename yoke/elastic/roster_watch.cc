#include <algorithm>

#include "yoke/base/text.h"
#include "yoke/elastic/roster.h"

/// Who is lost, by the signs of life and of progress.
namespace yoke::elastic {

namespace {

using Phase = Roster::Worker::Phase;

/// What an aborted worker needs to come back, on a machine that is busy too.
constexpr auto kAbortLimit = std::chrono::seconds(1);

}  // namespace

void Roster::tick(Now now) {
  const auto gap = last_tick_ == Now() ? Clock::duration() : now - last_tick_;
  last_tick_ = now;
  if (state_ == State::kOver) return;
  if (gap > options_.lease / 2) {
    // It was this process that did not run: what it has not heard says nothing about the others.
    for (auto& [id, worker] : workers_) worker.last_sign = std::max(worker.last_sign, now);
    return;
  }
  check_silence(now);
  check_stuck(now);
  check_aborted(now);
  fill(now);
  form_if_complete(now);
}

void Roster::check_silence(Now now) {
  std::vector<WorkerId> silent;
  for (const auto& [id, worker] : workers_) {
    if (!worker.doomed.empty() || worker.phase == Phase::kDone) continue;
    const bool must_speak = worker.connected || worker.rank >= 0;
    if (now - worker.last_sign > (must_speak ? options_.lease : options_.stuck_unknown))
      silent.push_back(id);
  }
  for (const WorkerId id : silent) {
    const Now sign = workers_.at(id).last_sign;
    lose(id, cat("silent for ", milliseconds_of(now - sign) / 1000, " s"), sign, now);
  }
}

void Roster::check_aborted(Now now) {
  // An abort ends every collective within 100 ms: who stays in one does not wait for others.
  if (!broken_ || now - broken_at_ < std::max<Clock::duration>(options_.lease, kAbortLimit)) return;
  std::vector<WorkerId> deaf;
  for (const WorkerId id : running_members()) {
    const Worker& worker = workers_.at(id);
    const auto in_section = worker.beat.in_section + (now - worker.last_sign);
    if (worker.beat.section == Section::kCommunicate && in_section > now - broken_at_)
      deaf.push_back(id);
  }
  for (const WorkerId id : deaf)
    lose(id, "it did not leave a collective that was aborted", broken_at_, now);
}

Clock::duration Roster::limit_of(Section section) const {
  const auto longest = longest_[static_cast<std::size_t>(section)];
  if (longest == Clock::duration::zero()) return options_.stuck_unknown;
  return std::max(options_.stuck_floor,
                  std::chrono::duration_cast<Clock::duration>(longest * options_.stuck_factor));
}

void Roster::check_stuck(Now now) {
  std::vector<WorkerId> stuck;
  bool all_wait = state_ == State::kRunning && !running_members().empty();
  for (const auto& [id, worker] : workers_) {
    if (!worker.doomed.empty() || !worker.connected || worker.phase == Phase::kDone) continue;
    const bool runs = worker.rank >= 0 && worker.phase == Phase::kRunning;
    if (!runs && worker.phase != Phase::kStarting) continue;
    const Section section = worker.beat.section;
    const bool over = worker.beat.in_section + (now - worker.last_sign) > limit_of(section);
    // Who waits in a collective waits for somebody else.
    const bool waits = section == Section::kCommunicate;
    if (runs) all_wait = all_wait && waits && over;
    if (over && !waits && section != Section::kWait) stuck.push_back(id);
  }
  for (const WorkerId id : stuck) {
    const Worker& worker = workers_.at(id);
    const auto span = worker.beat.in_section + (now - worker.last_sign);
    lose(id,
         cat("no progress in ", name_of(worker.beat.section), " of step ", worker.beat.step,
             " for ", milliseconds_of(span) / 1000, " s"),
         now - span, now);
  }
  if (all_wait) {
    if (changes_.empty()) since_ = now;
    break_generation("all ranks wait in a collective, and nothing moves", now);
  }
}

}  // namespace yoke::elastic
