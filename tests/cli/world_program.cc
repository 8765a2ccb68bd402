// What a program of several ranks looks like to `yoke launch`: it finds its world, and adds up over
// the store.

#include <iostream>

#include "yoke/net/world.h"

int main() {
  auto world = yoke::World::from_environment();
  auto deadline = yoke::Deadline::after(std::chrono::seconds(30));
  world.store().add("sum", world.rank() + 1);
  if (world.store().add("arrived", 1) == world.size()) world.store().set("all", "arrived");
  world.store().get("all", deadline);
  std::cout << "rank " << world.rank() << " of " << world.size() << ": sum "
            << world.store().add("sum", 0) << '\n';
}
