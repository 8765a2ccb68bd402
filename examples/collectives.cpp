// Collectives without a model: each rank throws darts at a circle, and all learn the estimate of
// pi.
//
//   ./collectives                              alone
//   yoke launch -n 4 -- ./collectives          also under torchrun, mpirun or srun
#include <cstdint>
#include <iostream>
#include <span>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/exit_code.h"
#include "yoke/base/random.h"
#include "yoke/comm/communicator.h"
#include "yoke/net/world.h"

int main() {
  try {
    const auto world = yoke::World::from_environment();
    const auto everybody = yoke::comm::Communicator::create(world);

    // Dart i falls at the same place whoever throws it: random numbers are addressed, not drawn.
    constexpr std::int64_t kDarts = 1'000'000;
    const auto x = yoke::RandomKey(1).with("x");
    const auto y = yoke::RandomKey(1).with("y");
    std::vector<std::int64_t> counts(2);  // {in the circle, thrown}
    for (std::int64_t i = world.rank(); i < kDarts; i += world.size()) {
      const float dx = x.uniform(i);
      const float dy = y.uniform(i);
      counts[0] += dx * dx + dy * dy < 1.0f;
      counts[1] += 1;
    }

    everybody->all_reduce(std::as_writable_bytes(std::span(counts)), yoke::DType::kInt64,
                          yoke::comm::ReduceOp::kSum);

    if (world.rank() == 0) {
      std::cout << "pi is about "
                << 4.0 * static_cast<double>(counts[0]) / static_cast<double>(counts[1]) << " ("
                << counts[1] << " darts, " << world.size() << " ranks)\n";
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return yoke::exit_code_of(error);
  }
}
