#include "yoke/elastic/budget.h"

#include <algorithm>

#include "yoke/base/exit_code.h"
#include "yoke/base/text.h"

namespace yoke::elastic {

namespace {
constexpr auto kFirstPause = std::chrono::milliseconds(100);
constexpr auto kLongestPause = std::chrono::seconds(30);
}  // namespace

Charge charge_of(const WorkerEnd& end) {
  // Exit code 71: this machine lacks something, memory most often.
  if (end.out_of_memory || end.exit_code == kExitEnvironment) return Charge::kMemory;
  if (end.signal != 0) return Charge::kInfrastructure;
  switch (end.exit_code) {
    case kExitOk:
    case kExitSaved:
      return Charge::kNothing;
    case kExitUsage:
    case kExitData:
    case kExitConfig:
    case kExitIo:
    case kExitDoNotRestart:
      return Charge::kFinal;
    case kExitPeerLost:
      return Charge::kInfrastructure;
    default:
      return Charge::kUser;
  }
}

Ruling Budget::again() {
  ++in_a_row_;
  if (in_a_row_ > restarts_) {
    return {.exit_code = kExitDoNotRestart,
            .why = cat(in_a_row_, " failures in a row without a step between them")};
  }
  // The first is most often the last: no pause.
  Clock::duration pause{};
  for (int i = 1; i < in_a_row_; ++i)
    pause =
        i == 1 ? Clock::duration(kFirstPause) : std::min<Clock::duration>(pause * 2, kLongestPause);
  return {.restart = true, .after = pause};
}

Ruling Budget::broke() {
  if (restarts_ == 0) return {.exit_code = kExitPeerLost, .why = "its ranks lost each other"};
  return again();
}

Ruling Budget::failed(const WorkerEnd& end, std::int64_t at_step) {
  const Charge charge = charge_of(end);
  if (charge == Charge::kNothing) return {.restart = true};
  if (charge == Charge::kFinal || restarts_ == 0) return {.exit_code = end.exit_code};
  if (charge == Charge::kMemory) {
    if (memory_failed_)
      return {.exit_code = end.exit_code, .why = "there was not enough memory, twice"};
    memory_failed_ = true;
  }
  if (charge == Charge::kUser) {
    if (user_failed_at_ == at_step && user_exit_code_ == end.exit_code) {
      return {.exit_code = kExitDoNotRestart,
              .why = cat("the same failure twice at step ", at_step)};
    }
    user_failed_at_ = at_step;
    user_exit_code_ = end.exit_code;
  }
  return again();
}

}  // namespace yoke::elastic
