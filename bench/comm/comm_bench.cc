// All-reduce of float32 sums between processes of one host, beside what the machine allows and
// beside Gloo, all in one run and interleaved.
//
//   comm_bench [RANKS] [SMALLEST_BYTES] [LARGEST_BYTES]     (default: 2 8 104857600)

#include <algorithm>
#include <cmath>
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

constexpr std::size_t kSizes[] = {8,
                                  1 << 10,
                                  16 << 10,
                                  64 << 10,
                                  1 << 20,
                                  4 << 20,
                                  std::size_t{25} << 20,
                                  std::size_t{100} << 20};
constexpr std::size_t kLarge = std::size_t{64} << 10;

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

Measured round_trip(Communicator& comm) {
  const auto lines = comm.share(4096);
  std::vector<double> runs;
  for (int i = 0; i < 25; ++i) {
    comm.barrier();
    runs.push_back(comm::cache_line_round_trip(*lines, comm.rank(), 5000));
  }
  return {comm::median_of(runs), *std::min_element(runs.begin(), runs.end())};
}

void print_head(const std::string& why_no_gloo) {
  if (!why_no_gloo.empty()) std::cout << why_no_gloo << "\n";
  std::cout
      << "us: medians of 7 interleaved rounds, and the best sample of all (the one that other "
         "work on the machine disturbed least)\n"
         "limit: a cache line there and back below 64 KiB (an all-reduce needs half of that); "
         "else its memory traffic alone\n"
         "in place: the data lies in a shared section; private: anywhere\n\n"
      << std::flush;
  std::printf("%8s %-7s %10s %10s %10s %10s %10s | %8s %8s %8s\n", "", "", "limit", "in place",
              "private", "yoke tcp", "gloo tcp", "limit /", "limit /", "gloo /");
  std::printf("%8s %-7s %10s %10s %10s %10s %10s | %8s %8s %8s\n", "", "", "", "", "", "", "",
              "in place", "private", "in place");
}

/// `times`: in place, private, tcp, and gloo if there is one.
void print_row(const std::string& size, const char* kind, double limit,
               const std::vector<double>& times) {
  const bool gloo = times.size() > 3;
  std::printf("%8s %-7s %10s %10s %10s %10s %10s | %7.0f%% %7.0f%% %8s\n", size.c_str(), kind,
              microseconds(limit).c_str(), microseconds(times[0]).c_str(),
              microseconds(times[1]).c_str(), microseconds(times[2]).c_str(),
              gloo ? microseconds(times[3]).c_str() : "not built", 100 * limit / times[0],
              100 * limit / times[1],
              gloo ? cat(std::round(times[3] / times[0] * 10) / 10, "x").c_str() : "");
  std::fflush(stdout);
}

int run(const World& world, std::size_t smallest, std::size_t largest) {
  const auto shm =
      Communicator::create(world, {.transport = TransportKind::kSharedMemory, .name = "shm"});
  const auto tcp = Communicator::create(world, {.transport = TransportKind::kTcp, .name = "tcp"});
  std::string why;
  const auto gloo = gloo_all_reduce(*shm, why);
  const Measured trip = round_trip(*shm);
  if (world.rank() == 0) print_head(why);

  for (const std::size_t bytes : kSizes) {
    if (bytes < smallest || bytes > largest) continue;
    const auto sections = shm->share(bytes);
    const std::span<std::byte> shared = sections->of(world.rank()).first(bytes);
    std::vector<float> own(bytes / sizeof(float));
    const std::span<std::byte> data = std::as_writable_bytes(std::span(own));
    const auto all_reduce = [](Communicator& comm, std::span<std::byte> place) {
      return [&comm, place] { comm.all_reduce(place, DType::kFloat32, comm::ReduceOp::kSum); };
    };
    std::vector<Contender> contenders = {{"in place", all_reduce(*shm, shared), shared},
                                         {"private", all_reduce(*shm, data), data},
                                         {"tcp", all_reduce(*tcp, data), data}};
    if (gloo) contenders.push_back({"gloo", [&] { gloo(data); }, data});
    const std::size_t compared = contenders.size();
    for (const auto stores : {comm::Stores::kPlain, comm::Stores::kStreaming}) {
      if (bytes < kLarge) continue;
      const auto pass = [&, stores] {
        comm::memory_bound_pass(*sections, world.rank(), world.size(), bytes, stores);
      };
      contenders.push_back({"limit", pass, shared});
    }
    const std::vector<Measured> measured = comm::measure(*shm, contenders, {.large = kLarge});
    if (world.rank() != 0) continue;
    for (const auto& [kind, figure] :
         {std::pair{"median", &Measured::median}, std::pair{"best", &Measured::best}}) {
      std::vector<double> times;
      for (std::size_t i = 0; i < compared; ++i) times.push_back(measured[i].*figure);
      double limit = trip.*figure;
      for (std::size_t i = compared; i < measured.size(); ++i) {
        limit = i == compared ? measured[i].*figure : std::min(limit, measured[i].*figure);
      }
      print_row(size_name(bytes), kind, limit, times);
    }
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
