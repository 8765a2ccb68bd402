#include "yoke/net/world.h"

#include <cstdlib>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/net/handshake.h"

namespace yoke {

World World::from_environment(const net::RendezvousOptions& options) {
  auto completed = options;
  if (const char* token = std::getenv("YOKE_TOKEN"); completed.token.empty() && token != nullptr) {
    completed.token = token;
  }
  return at(place_from(process_environment()), completed);
}

World World::at(const Place& place, const net::RendezvousOptions& options) {
  if (place.size < 1 || place.rank < 0 || place.rank >= place.size) {
    throw ConfigError(cat("rank ", place.rank, " of ", place.size, " ranks cannot be."));
  }
  World world;
  world.place_ = place;
  world.token_ = net::token_of(options.token, place.job);
  auto completed = options;
  completed.token = world.token_;
  world.store_ = net::open_store(place, completed);
  world.shared_memory_ = place.size == 1 ? net::make_thread_shared_memory()
                                         : net::make_process_shared_memory(world.store_);
  return world;
}

std::vector<World> World::of_threads(int size) {
  auto store = net::make_memory_store();
  auto memory = net::make_thread_shared_memory();
  auto token = random_token();
  std::vector<World> worlds;
  for (int rank = 0; rank < size; ++rank) {
    World world;
    world.place_.rank = world.place_.local_rank = rank;
    world.place_.size = world.place_.local_size = size;
    world.place_.job = "threads";
    world.token_ = token;
    world.store_ = store;
    world.shared_memory_ = memory;
    worlds.push_back(world);
  }
  return worlds;
}

}  // namespace yoke
