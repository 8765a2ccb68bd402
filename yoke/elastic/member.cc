#include "yoke/elastic/member.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "yoke/base/error.h"
#include "yoke/base/log.h"
#include "yoke/elastic/wire_json.h"

namespace yoke::elastic {

using nlohmann::json;

namespace {
constexpr auto kFarewell = std::chrono::seconds(1);
}  // namespace

Member::Member(const MemberOptions& options)
    : options_(options),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      last_ack_(Clock::now().time_since_epoch().count()),
      link_(options.coordinator, options.job, options.token) {
  if (!wake_) throw CommunicationError(cat("eventfd failed: ", net::error_text(errno), "."));
  thread_ = std::jthread([this](const std::stop_token& stop) {
    ::pthread_setname_np(::pthread_self(), "yoke-member");
    serve(stop);
  });
}

Member::~Member() {
  thread_.request_stop();
  wake();
}

void Member::wake() {
  std::uint64_t one = 1;
  [[maybe_unused]] auto written = ::write(wake_.number(), &one, sizeof one);
}

void Member::say(json message) {
  {
    const std::lock_guard lock(mutex_);
    to_say_.push_back(std::move(message));
  }
  wake();
}

Clock::duration Member::since_ack() const {
  return Clock::now() - Clock::time_point(Clock::duration(last_ack_.load()));
}

void Member::serve(const std::stop_token& stop) {
  std::optional<Deadline> farewell;
  for (;;) {
    if (link_.advance()) greet();
    while (const auto message = link_.next()) hear(*message);
    if (link_.connected()) {
      std::vector<json> messages;
      {
        const std::lock_guard lock(mutex_);
        messages.swap(to_say_);
      }
      for (const json& message : messages) link_.push(message);
      if (Clock::now() >= next_beat_) beat();
      link_.flush();
    }
    if (stop.stop_requested()) {
      // The last words: that this worker is done.
      if (!farewell) farewell = Deadline::after(kFarewell);
      if (!link_.connected() || (link_.events() & POLLOUT) == 0 || farewell->passed()) return;
    }
    auto until = std::min(next_beat_, Clock::now() + options_.beat);
    if (link_.descriptor() < 0) until = std::min(until, link_.next_try());
    pollfd polled[2] = {{wake_.number(), POLLIN, 0}, {link_.descriptor(), 0, 0}};
    if (link_.descriptor() >= 0) polled[1].events = link_.events();
    const auto left = std::max<Clock::duration>(until - Clock::now(), {});
    ::poll(polled, 2, net::poll_milliseconds(Deadline::after(left)));
    std::uint64_t count = 0;
    while (::read(wake_.number(), &count, sizeof count) > 0) {
    }
  }
}

void Member::greet() {
  const std::lock_guard lock(mutex_);
  link_.push({{"say", "worker"},
              {"worker", options_.worker},
              {"pid", ::getpid()},
              {"generation", generation_}});
  // What a coordinator that died may not have heard, or not have kept; once, even if it waits to be
  // said for the first time.
  std::erase_if(to_say_, [](const json& message) {
    return message["say"] == "ready" || message["say"] == "done";
  });
  if (!ready_.is_null()) link_.push(ready_);
  if (done_) link_.push(*done_);
  connected_ = true;
  next_beat_ = Clock::now();
  changed_.notify_all();
}

void Member::beat() {
  next_beat_ = Clock::now() + options_.beat;
  const auto place = marks_.now();
  Beat beat{.step = place.step,
            .section = place.section,
            .in_section = Clock::now() - place.since,
            .longest = marks_.take_longest()};
  {
    const std::lock_guard lock(mutex_);
    beat.generation = generation_;
  }
  link_.push(to_json(beat));
}

void Member::hear(const json& message) {
  const std::string what = message["say"];
  last_ack_ = Clock::now().time_since_epoch().count();
  try {
    if (what == "view") {
      View view;
      view.place.generation = message.at("generation");
      view.place.rank = view.place.local_rank = message.at("rank");
      view.place.size = view.place.local_size = message.at("size");
      view.place.launcher = "yoke";
      view.place.job = options_.job;
      view.store_at = message.at("store");
      for (const auto& change : message.at("changes")) view.changes.push_back(change_from(change));
      view.since =
          Clock::now() - std::chrono::microseconds(message.at("age_us").get<std::int64_t>());
      view.anyone_live = message.at("anyone_live");
      view.reached = message.at("reached");
      const std::lock_guard lock(mutex_);
      if (view.place.generation <= generation_) return;
      view_ = std::move(view);
    } else if (what == "abort") {
      const std::uint64_t generation = message.at("generation");
      bool concerns_us = false;
      {
        const std::lock_guard lock(mutex_);
        aborted_ = std::max(aborted_, generation);
        abort_reason_ = message.at("reason");
        concerns_us = generation >= generation_;
        if (concerns_us) over_ = true;
      }
      const std::lock_guard lock(abort_mutex_);
      if (concerns_us && abort_) abort_(message.at("reason"));
    } else if (what == "change") {
      // It may come before this worker has entered the generation that it is about.
      const std::lock_guard lock(mutex_);
      change_asked_ = std::max(change_asked_, message.at("generation").get<std::uint64_t>());
      change_wanted_ = change_asked_ >= generation_;
    } else if (what == "stop") {
      stop_wanted_ = true;
    } else if (what == "dismiss") {
      const std::lock_guard lock(mutex_);
      dismissed_ = true;
    }
  } catch (const json::exception& error) {
    log_warning("the coordinator's message is not understood: ", error.what());
  }
  changed_.notify_all();
}

std::optional<View> Member::next(const Standing& standing, const std::optional<Break>& why) {
  marks_.enter(Section::kWait, standing.step);
  std::unique_lock lock(mutex_);
  ready_ = {{"say", "ready"},
            {"generation", generation_},
            {"live", standing.live},
            {"step", standing.step}};
  if (why) {
    ready_["lost"] = why->lost_rank;
    ready_["message"] = why->message;
  }
  view_.reset();
  to_say_.push_back(ready_);
  wake();
  for (;;) {
    changed_.wait_for(lock, std::chrono::milliseconds(100));
    if (dismissed_) return std::nullopt;
    if (view_) break;
    if (since_ack() > options_.patience) {
      throw CommunicationError(
          cat("there was no coordinator for ", Seconds(options_.patience).count(),
              " s. Look at the output of yoke train, and start the same command again."));
    }
  }
  View view = std::move(*view_);
  view_.reset();
  ready_ = nullptr;
  generation_ = view.place.generation;
  change_wanted_ = change_asked_ >= generation_;
  over_ = aborted_ >= generation_;
  marks_.enter(Section::kStart, standing.step);
  return view;
}

World Member::enter(const View& view) {
  return World::at(view.place, {.token = options_.token,
                                .timeout = options_.join_timeout,
                                .served_at = view.store_at,
                                .cancelled = &over_});
}

void Member::on_abort(std::function<void(const std::string&)> abort) {
  const std::lock_guard lock(abort_mutex_);
  abort_ = std::move(abort);
  if (!abort_) return;
  std::string reason;
  {
    const std::lock_guard inner(mutex_);
    if (aborted_ < generation_ || generation_ == 0) return;
    reason = abort_reason_;
  }
  abort_(reason);
}

void Member::hold() {
  if (acts()) return;
  const auto place = marks_.now();
  marks_.enter(Section::kWait, place.step);
  log_warning("the coordinator has not answered for ", Seconds(since_ack()).count(),
              " s: this worker waits for it before it goes on");
  std::unique_lock lock(mutex_);
  while (!acts()) {
    changed_.wait_for(lock, std::chrono::milliseconds(20));
    if (since_ack() > options_.patience) {
      throw CommunicationError(
          cat("there was no coordinator for ", Seconds(options_.patience).count(),
              " s. Look at the output of yoke train, and start the same command again."));
    }
  }
  if (aborted_ >= generation_) throw Aborted(generation_, abort_reason_);
}

void Member::leave(const std::string& cause) {
  say({{"say", "leave"}, {"cause", cause}});
}

void Member::noted() {
  std::uint64_t generation = 0;
  {
    const std::lock_guard lock(mutex_);
    generation = generation_;
  }
  say({{"say", "noted"}, {"generation", generation}});
}

void Member::done(bool finished) {
  json message{{"say", "done"}, {"finished", finished}};
  {
    const std::lock_guard lock(mutex_);
    done_ = message;
  }
  say(std::move(message));
}

}  // namespace yoke::elastic
