#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "yoke/elastic/link.h"
#include "yoke/elastic/membership.h"
#include "yoke/elastic/roster.h"

namespace yoke::elastic {

struct MemberOptions {
  net::Address coordinator;
  std::string job;
  std::string token;
  WorkerId worker = 0;
  Clock::duration lease = std::chrono::seconds(2);  ///< the coordinator's
  Clock::duration beat = std::chrono::milliseconds(200);
  /// Without a coordinator for so long, next() and hold() give up.
  Clock::duration patience = std::chrono::minutes(10);
  Clock::duration join_timeout = std::chrono::seconds(60);  ///< of enter()
};

/// A worker's side of a coordinator: a thread that sends heartbeats and hears of generations,
/// aborts and wishes. The training thread never waits for the network but in next(), enter() and
/// hold().
///
/// The lease: a worker that has not been heard for options.lease is declared dead. It stops acting
/// before that, by its own monotonic clock, in hold(), at three quarters of it.
class Member final : public Membership {
 public:
  explicit Member(const MemberOptions& options);
  ~Member() override;

  std::optional<View> next(const Standing& standing, const std::optional<Break>& why) override;
  World enter(const View& view) override;
  void on_abort(std::function<void(const std::string&)> abort) override;
  bool change_wanted() const override { return change_wanted_.load(); }
  bool stop_wanted() const override { return stop_wanted_.load(); }
  void hold() override;
  bool acts() const override { return since_ack() < options_.lease * 3 / 4; }
  void failed(std::int64_t step) override { say({{"say", "failed"}, {"step", step}}); }
  void leave(const std::string& cause) override;
  void noted() override;
  void done(bool finished) override;
  bool recovers() const override { return true; }

 private:
  void serve(const std::stop_token& stop);
  void greet();
  void hear(const nlohmann::json& message);
  void beat();
  void wake();
  void say(nlohmann::json message);
  Clock::duration since_ack() const;

  const MemberOptions options_;
  net::Descriptor wake_;  ///< eventfd: something is to be said, or the thread is to end
  std::atomic<bool> change_wanted_{false}, stop_wanted_{false};
  std::atomic<bool> over_{false};     ///< the generation that this worker is in
  std::atomic<Clock::rep> last_ack_;  ///< when the coordinator was last heard

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  std::uint64_t generation_ = 0;        ///< that this worker is in, or was in last
  nlohmann::json ready_;                ///< waits for a view; null: it trains
  std::vector<nlohmann::json> to_say_;  ///< not yet handed to the link
  std::optional<View> view_;            ///< the newest that has come, until next() takes it
  std::uint64_t aborted_ = 0;           ///< the newest generation that was declared over
  std::string abort_reason_;
  std::uint64_t change_asked_ = 0;  ///< the newest generation that is to be left at a boundary
  bool dismissed_ = false;
  bool connected_ = false;
  std::optional<nlohmann::json> done_;  ///< said again after a reconnection
  std::mutex abort_mutex_;              ///< guards abort_; never taken with mutex_ held
  std::function<void(const std::string&)> abort_;

  Link link_;  ///< the thread's alone
  Clock::time_point next_beat_{};
  std::jthread thread_;  ///< last: it uses all of the above
};

}  // namespace yoke::elastic
