// The fuzz target of config_fuzz.cc without a fuzzer, so that every run of the tests goes over its
// corpus.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "tests/support/fuzz_replay.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace yoke {
namespace {

const std::filesystem::path kCorpus = YOKE_CONFIG_CORPUS;

TEST(ConfigFuzz, TheCorpusAndItsMutationsKeepTheLaws) {
  std::string last;
  try {
    test::replay(LLVMFuzzerTestOneInput, kCorpus, 3000, last);
  } catch (const std::exception& error) {
    FAIL() << error.what() << ", for: " << testing::PrintToString(last);
  }
}

TEST(ConfigFuzz, MutationsAreManyAndRepeatable) {
  static std::vector<std::string> seen;
  const auto watch = [](const std::uint8_t* data, std::size_t size) {
    seen.emplace_back(reinterpret_cast<const char*>(data), size);
    return 0;
  };
  std::string last;
  test::replay(watch, kCorpus, 500, last);
  const std::vector<std::string> first = std::move(seen);
  seen.clear();
  test::replay(watch, kCorpus, 500, last);
  EXPECT_EQ(first, seen);
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_GT(seen.size(), 450u);
}

}  // namespace
}  // namespace yoke
