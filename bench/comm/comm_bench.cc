// All-reduce of float32 sums between processes of one host, beside what the machine allows and
// beside Gloo, all in one run and interleaved.
//
//   comm_bench [RANKS] [SMALLEST_BYTES] [LARGEST_BYTES]     (default: 2 8 104857600)

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "bench/comm/gloo_peer.h"
#include "bench/comm/ranks.h"
#include "yoke/base/error.h"
#include "yoke/comm/communicator.h"
#include "yoke/comm/limits.h"
#include "yoke/comm/measure.h"

namespace yoke::bench {
namespace {

using comm::Communicator;
using comm::Contender;
using comm::Measured;
using comm::TransportKind;

std::string size_name(std::size_t bytes) {
  if (bytes < 1024) return cat(bytes, " B");
  return bytes < 1 << 20 ? cat(bytes >> 10, " KiB") : cat(bytes >> 20, " MiB");
}

std::string microseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text,
                seconds < 1e-5   ? "%.3f"
                : seconds < 1e-3 ? "%.1f"
                                 : "%.0f",
                seconds * 1e6);
  return text;
}

/// The shortest of several runs: what the line takes when nothing else happens.
double round_trip(Communicator& comm, comm::SharedSections& sections) {
  std::vector<double> runs;
  for (int i = 0; i < 15; ++i) {
    comm.barrier();
    runs.push_back(comm::cache_line_round_trip(sections, comm.rank(), 20'000));
  }
  return comm::median_of(runs);
}

int run(const World& world, std::size_t smallest, std::size_t largest) {
  const auto shm =
      Communicator::create(world, {.transport = TransportKind::kSharedMemory, .name = "shm"});
  const auto tcp = Communicator::create(world, {.transport = TransportKind::kTcp, .name = "tcp"});
  std::string why;
  const auto gloo = gloo_all_reduce(*shm, why);
  const auto lines = shm->share(4096);
  const double trip = round_trip(*shm, *lines);
  const bool speaks = world.rank() == 0;
  if (speaks) {
    std::cout << "cache line, there and back: " << microseconds(trip) << " us\n";
    if (!why.empty()) std::cout << why << "\n";
    std::cout << "times in us, medians of 7 interleaved rounds; `limit` is a cache line's round "
                 "trip below 64 KiB (an "
                 "all-reduce needs half of one), else the memory traffic alone\n\n";
    std::printf("%10s %10s %12s %12s %10s %12s %12s %12s %10s\n", "bytes", "limit", "in place",
                "private", "limit/it", "private ", "yoke tcp", "gloo tcp", "gloo/it");
  }
  for (std::size_t bytes :
       {std::size_t{8}, std::size_t{1} << 10, std::size_t{16} << 10, std::size_t{64} << 10,
        std::size_t{1} << 20, std::size_t{25} << 20, std::size_t{100} << 20}) {
    if (bytes < smallest || bytes > largest) continue;
    const auto sections = shm->share(bytes);
    const std::span<std::byte> shared = sections->of(world.rank()).first(bytes);
    std::vector<float> own(bytes / sizeof(float));
    const std::span<std::byte> data = std::as_writable_bytes(std::span(own));
    const auto all_reduce = [](Communicator& comm, std::span<std::byte> place) {
      return [&comm, place] { comm.all_reduce(place, DType::kFloat32, comm::ReduceOp::kSum); };
    };
    const bool large = bytes >= std::size_t{64} << 10;
    std::vector<Contender> contenders = {{"in place", all_reduce(*shm, shared), shared},
                                         {"private", all_reduce(*shm, data), data},
                                         {"tcp", all_reduce(*tcp, data), data}};
    if (gloo) contenders.push_back({"gloo", [&] { gloo(data); }, data});
    if (large) {
      for (const auto stores : {comm::Stores::kPlain, comm::Stores::kStreaming}) {
        contenders.push_back({"limit",
                              [&, stores] {
                                comm::memory_bound_pass(*sections, world.rank(), world.size(),
                                                        bytes, stores);
                              },
                              shared});
      }
    }
    const std::vector<Measured> times = comm::measure(*shm, contenders);
    const double limit =
        large ? std::min(times[times.size() - 1].median, times[times.size() - 2].median) : trip;
    if (!speaks) continue;
    const double gloo_time = gloo ? times[3].median : 0;
    std::printf("%10s %10s %12s %12s %9.0f%% %11.0f%% %12s %12s %9.1fx\n", size_name(bytes).c_str(),
                microseconds(limit).c_str(), microseconds(times[0].median).c_str(),
                microseconds(times[1].median).c_str(), 100 * limit / times[0].median,
                100 * limit / times[1].median, microseconds(times[2].median).c_str(),
                gloo ? microseconds(gloo_time).c_str() : "not built", gloo_time / times[0].median);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace yoke::bench

int main(int count, char** arguments) {
  const auto argument = [&](int i, std::size_t otherwise) {
    return count > i ? static_cast<std::size_t>(std::atoll(arguments[i])) : otherwise;
  };
  const auto ranks = static_cast<int>(argument(1, 2));
  const std::size_t smallest = argument(2, 8);
  const std::size_t largest = argument(3, std::size_t{100} << 20);
  std::cout << "machine: " << yoke::bench::machine() << "\ncommand:";
  for (int i = 0; i < count; ++i) std::cout << " " << arguments[i];
  std::cout << "\nall-reduce of float32, sum, " << ranks << " processes\n";
  return yoke::bench::run_ranks(
      ranks, [&](const yoke::World& world) { return yoke::bench::run(world, smallest, largest); });
}
