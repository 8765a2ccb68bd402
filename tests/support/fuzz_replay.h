#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "yoke/base/files.h"
#include "yoke/base/random.h"

namespace yoke::test {

/// One change of the kind that fuzzers make, drawn by `key`: a bit, a byte, a cut, a repetition, a
/// splice.
inline void mutate(std::string& text, const std::string& other, const RandomKey& key) {
  const auto below = [&](std::uint64_t i, std::size_t limit) {
    return static_cast<std::size_t>(key.bits(i) % std::max<std::size_t>(limit, 1));
  };
  const std::size_t at = below(1, text.size());
  const std::size_t count = std::min(text.size() - at, 1 + below(2, 16));
  switch (below(0, 6)) {
    case 0:
      if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1 << below(3, 8)));
      break;
    case 1:
      if (!text.empty()) text[at] = static_cast<char>(key.bits(4));
      break;
    case 2:
      text.insert(at, 1, static_cast<char>(key.bits(4)));
      break;
    case 3:
      text.erase(at, count);
      break;
    case 4:
      text.insert(at, std::string(text, at, count));
      break;
    default:
      text = text.substr(0, at) + other.substr(below(5, other.size()));
  }
}

/// Gives a fuzz target (LLVMFuzzerTestOneInput) every file of `corpus`, and then `count` mutations
/// of them, the same ones in every run. What the target throws is passed on; `last` then holds the
/// input.
inline void replay(int (*target)(const std::uint8_t*, std::size_t),
                   const std::filesystem::path& corpus, std::size_t count, std::string& last) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(corpus))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const auto& path : paths) inputs.push_back(read_file(path));
  const auto give = [&](const std::string& input) {
    last = input;
    target(reinterpret_cast<const std::uint8_t*>(last.data()), last.size());
  };
  for (const std::string& input : inputs) give(input);
  for (std::size_t i = 0; i < count && !inputs.empty(); ++i) {
    const RandomKey key = RandomKey(1).with("mutation").with(i);
    std::string input = inputs[key.bits(0) % inputs.size()];
    const std::uint64_t changes = 1 + key.bits(2) % 8;
    for (std::uint64_t change = 0; change < changes; ++change) {
      mutate(input, inputs[key.bits(3 + change) % inputs.size()], key.with(change));
    }
    give(input);
  }
}

}  // namespace yoke::test
