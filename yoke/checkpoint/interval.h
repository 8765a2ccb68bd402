#pragma once

#include <filesystem>

#include "yoke/base/clock.h"

namespace yoke::checkpoint {

/// How often to take a checkpoint that costs `cost` (the time for which training stands still) on
/// machines that fail every `mean_time` on average: sqrt(2 C M), which makes expected_waste least
/// (J. Young, A first order approximation to the optimum checkpoint interval, CACM 17(9), 1974; for
/// C much smaller than M). Both must be above zero.
Seconds best_interval(Seconds cost, Seconds mean_time);

/// The part of the time that is lost when a checkpoint is taken every `interval`: C / T for taking
/// them, T / 2M for work done again after a failure.
double expected_waste(Seconds cost, Seconds interval, Seconds mean_time);

/// What a run takes for granted before it has failed once.
inline constexpr Seconds kUnknownMeanTime{24 * 3600.0};

/// Time between failures in a run's own `events.jsonl`: the time that it is known to have run, over
/// the number of failures (killed, hung, partitioned, oom, coordinator). Time between an event and
/// the next `start` is not counted, since the run may have stood still; that errs on the side of
/// more checkpoints. kUnknownMeanTime where there is no failure or no file. Lines that cannot be
/// read are left out. Throws IoError.
Seconds mean_time_between_failures(const std::filesystem::path& events);

}  // namespace yoke::checkpoint
