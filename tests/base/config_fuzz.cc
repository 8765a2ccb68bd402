// Whatever a file, a variable or a flag holds: the configuration takes it whole or refuses it by
// ConfigError.
//
//   cmake -B build-fuzz -DCMAKE_CXX_COMPILER=clang++ -DYOKE_FUZZ=ON -DYOKE_TORCH=OFF
//   cmake --build build-fuzz --target yoke_config_fuzz
//   build-fuzz/yoke_config_fuzz -max_len=4096 NEW_INPUTS tests/base/config_corpus

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "yoke/base/config_tree.h"
#include "yoke/base/error.h"

namespace yoke {
namespace {

struct Sample {
  Sample() {
    tree.add("seed", &seed, "");
    tree.add("train.micro_batch", &micro_batch, "", {.least = 1, .most = 4096});
    tree.add("train.deep.flag", &flag, "");
    tree.add("optimizer.lr", &lr, "", {.least = 0.0});
    tree.add("optimizer.eps", &eps, "");
    tree.add("optimizer.name", &name, "", {"sgd", "adam"});
    tree.add("data.path", &path, "");
  }

  std::int64_t seed = 1, micro_batch = 8;
  bool flag = false;
  double lr = 0.1, eps = 1e-8;
  std::string name = "sgd", path = "data.csv";
  ConfigTree tree;
};

void require(bool good, const char* law) {
  if (!good) throw std::logic_error(law);
}

}  // namespace
}  // namespace yoke

/// The first byte says where the rest comes from: E a variable, S a flag, else a file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace yoke;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string rest = text.empty() ? "" : text.substr(1);
  Sample sample;
  const std::string before = sample.tree.to_toml();
  try {
    if (text.starts_with('E')) {
      sample.tree.load_environment({rest});
    } else if (text.starts_with('S')) {
      sample.tree.set(rest);
    } else {
      sample.tree.load_text(rest, "fuzz.toml");
    }
  } catch (const ConfigError& error) {
    require(std::string(error.what()).size() > 10, "an error says something");
    require(sample.tree.to_toml() == before, "what is refused changes nothing");
    return 0;
  }
  require(sample.micro_batch >= 1 && sample.micro_batch <= 4096, "integers are in range");
  require(sample.lr >= 0.0 && sample.eps == sample.eps, "numbers are in range");
  require(sample.name == "sgd" || sample.name == "adam", "choices are kept");
  Sample again;
  again.tree.load_text(sample.tree.to_toml(true), "again.toml");
  require(again.tree.to_toml() == sample.tree.to_toml(), "what is written is read back");
  return 0;
}
