#include "yoke/net/transport.h"

#include <array>
#include <string_view>

#include "yoke/base/text.h"

namespace yoke::net {
namespace {

// The words that comm uses for these numbers (comm/operation.h); this folder only prints them.
constexpr std::array<std::string_view, 13> kOperations{
    "all_reduce", "reduce_scatter", "all_gather", "reduce",  "broadcast",
    "all_to_all", "gather",         "scatter",    "barrier", "send",
    "receive",    "reduce_blocks",  "share"};
constexpr std::array<std::string_view, 5> kReductions{"sum", "mean", "max", "min", "product"};
constexpr std::array<std::string_view, 4> kTopologies{"auto", "tree", "ring", "full_mesh"};
constexpr std::array<bool, 13> kReduces{true, true, false, true};
constexpr std::size_t kReduceBlocks = 11, kSend = 9, kReceive = 10;

template <std::size_t N>
std::string word(const std::array<std::string_view, N>& words, std::uint8_t value) {
  return value < N ? std::string(words[value]) : cat("(unknown ", static_cast<int>(value), ")");
}

}  // namespace

bool is_collective(const CallTag& tag) {
  return tag.operation != kSend && tag.operation != kReceive;
}

std::string describe(const CallTag& tag) {
  auto text = cat(word(kOperations, tag.operation), " #", tag.sequence);
  if (tag.count > 0) {
    text +=
        cat(" of ", tag.count, " ",
            tag.dtype <= DType::kBool ? name_of(tag.dtype) : std::string_view("(unknown dtype)"));
  }
  auto operation = std::size_t{tag.operation};
  if (operation == kReduceBlocks || (operation < kReduces.size() && kReduces[operation])) {
    text += cat(" ", word(kReductions, tag.reduce));
  }
  if (tag.root >= 0) {
    text += cat(", root ", tag.root);
  }
  if (tag.topology != 0) {
    text += cat(" (", word(kTopologies, tag.topology), ")");
  }
  return text;
}

}  // namespace yoke::net
