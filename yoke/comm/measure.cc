#include "yoke/comm/measure.h"

#include <algorithm>

#include "yoke/base/error.h"

namespace yoke::comm {
namespace {

double slowest(Communicator& comm, double seconds) {
  comm.all_reduce(std::as_writable_bytes(std::span(&seconds, 1)), DType::kFloat64, ReduceOp::kMax,
                  Topology::kAuto);
  return seconds;
}

double timed(Communicator& comm, const Contender& contender, int runs) {
  comm.barrier();
  const auto begin = Clock::now();
  for (int i = 0; i < runs; ++i) contender.run();
  return slowest(comm, Seconds(Clock::now() - begin).count()) / runs;
}

void rewrite(std::span<std::byte> data) {
  auto* values = reinterpret_cast<float*>(data.data());
  std::fill_n(values, data.size() / sizeof(float), 1.0f);
}

/// How many runs make a sample: one of a large buffer, about 1 ms of small ones.
int runs_of(Communicator& comm, const Contender& contender, const MeasureOptions& options) {
  if (contender.data.size() >= options.large) return 1;
  timed(comm, contender, 10);
  return static_cast<int>(
      std::clamp(1e-3 / std::max(timed(comm, contender, 20), 1e-9), 5.0, 20'000.0));
}

std::vector<double> samples_of(Communicator& comm, const Contender& contender, int runs,
                               const MeasureOptions& options) {
  std::vector<double> samples;
  for (int i = 0; i < options.samples; ++i) {
    if (contender.data.size() >= options.large) rewrite(contender.data);
    samples.push_back(timed(comm, contender, runs));
  }
  return samples;
}

}  // namespace

double median_of(std::vector<double> values) {
  YOKE_ENSURE(!values.empty(), "There is no median of nothing.");
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<Measured> measure(Communicator& comm, std::span<const Contender> contenders,
                              const MeasureOptions& options) {
  YOKE_ENSURE(options.rounds > 0 && options.samples > 0, options.rounds, " rounds of ",
              options.samples, " samples.");
  std::vector<int> runs;
  for (const Contender& contender : contenders) {
    rewrite(contender.data);
    contender.run();
    runs.push_back(runs_of(comm, contender, options));
  }
  std::vector<std::vector<double>> medians(contenders.size()), samples(contenders.size());
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      const auto times = samples_of(comm, contenders[i], runs[i], options);
      medians[i].push_back(median_of(times));
      samples[i].insert(samples[i].end(), times.begin(), times.end());
    }
  }
  std::vector<Measured> measured;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    measured.push_back(
        {median_of(medians[i]), *std::min_element(samples[i].begin(), samples[i].end())});
  }
  return measured;
}

}  // namespace yoke::comm
