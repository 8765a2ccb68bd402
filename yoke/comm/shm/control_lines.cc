#include "yoke/comm/shm/control_lines.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "yoke/base/error.h"

namespace yoke::comm {
namespace {

template <typename IsThere>
struct ForPeers final : net::Waiting {
  ForPeers(int size, const net::CallTag& tag, IsThere is_there)
      : size(size), tag(tag), is_there(is_there) {}
  bool ready() override { return is_there(peer); }
  std::vector<int> missing() override {
    std::vector<int> absent;
    for (int rank = 0; rank < size; ++rank) {
      if (!is_there(rank)) absent.push_back(rank);
    }
    return absent;
  }
  std::string operation() override { return net::describe(tag); }

  const int size;
  const net::CallTag& tag;
  IsThere is_there;
  int peer = 0;
};

}  // namespace

std::size_t ControlLines::region_bytes(int ranks) {
  return 2 * ranks * sizeof(Padded);
}

ControlLines::ControlLines(std::shared_ptr<net::ShmGroup> group, std::byte* region)
    : group_(std::move(group)), lines_(reinterpret_cast<Padded*>(region)) {}

void ControlLines::begin(const net::CallTag& tag, std::uint64_t detail,
                         std::span<const std::byte> payload, Deadline deadline) {
  Line& mine = line(group_->rank(), phase_ + 1);
  mine.tag = tag;
  mine.detail = detail;
  if (!payload.empty()) std::memcpy(mine.payload, payload.data(), payload.size());
  tag_ = tag;
  advance(deadline);
  for (int rank = 0; rank < group_->size(); ++rank) {
    if (!(line(rank, phase_).tag == tag)) mismatch();
  }
}

void ControlLines::advance(Deadline deadline) {
  ++phase_;
  line(group_->rank(), phase_).signal.post(phase_);
  await(deadline);
}

void ControlLines::await(Deadline deadline) {
  const auto is_there = [this](int rank) {
    return line(rank, phase_).signal.value.load(std::memory_order_acquire) == phase_;
  };
  ForPeers peers(group_->size(), tag_, is_there);
  for (; peers.peer < group_->size(); ++peers.peer) {
    if (peers.ready()) continue;
    group_->wait(line(peers.peer, phase_).signal, peers, deadline);
  }
}

void ControlLines::mismatch() {
  // The call that most ranks make, of equals the one with the lowest rank, is taken for the right
  // one.
  const auto tag_of = [&](int rank) -> const net::CallTag& { return line(rank, phase_).tag; };
  int right = 0;
  int most = 0;
  for (int rank = 0; rank < group_->size(); ++rank) {
    int same = 0;
    for (int other = 0; other < group_->size(); ++other) same += tag_of(other) == tag_of(rank);
    if (same > most) {
      most = same;
      right = rank;
    }
  }
  int wrong = 0;
  while (tag_of(wrong) == tag_of(right)) ++wrong;
  group_
      ->fail({.kind = net::Failure::Kind::kMismatch,
              .rank = wrong,
              .message = cat("rank ", wrong, " called ", net::describe(tag_of(wrong)), " on \"",
                             group_->name(), "\" while rank ", right, " called ",
                             net::describe(tag_of(right)),
                             ". Every rank must make the same calls in the same order.")})
      .raise();
}

}  // namespace yoke::comm
