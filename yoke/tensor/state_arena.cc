#include "yoke/tensor/state_arena.h"

#include <algorithm>
#include <cstring>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"

namespace yoke::tensor {

namespace {

constexpr std::uint64_t kMagic = 0x61746e65526b6f79;

std::uint64_t fingerprint_of(const ArenaLayout& layout, const std::vector<std::string>& slots,
                             int writers) {
  std::string text = cat(writers, ' ', layout.bytes());
  for (const auto& entry : layout.entries())
    text += cat('\n', entry.name, ' ', name_of(entry.dtype), ' ', entry.offset);
  for (const auto& slot : slots) text += '\n' + slot;
  return xxh3(text);
}

}  // namespace

struct StateArena::Header {
  std::uint64_t magic;
  std::uint64_t layout;
  std::atomic<std::uint64_t> generation;
  std::atomic<std::int64_t> step;
  std::atomic<std::uint32_t> updating;
  std::atomic<std::int32_t>
      writers;  ///< that have written since the last end_update: 0 .. this - 1
};

/// Where one writer is. Fences keep the order of the stores, which is the order that survivors see.
struct StateArena::Note {
  std::atomic<std::int64_t> step_and_one;  ///< 0: it writes in none
  std::atomic<std::uint64_t> chunk_first;
  std::atomic<std::uint64_t> chunk_last;
  std::atomic<std::uint32_t> writing;
  std::atomic<std::uint64_t> done_until;
};

std::size_t StateArena::bytes_needed(const ArenaLayout& layout, std::size_t slots, int writers) {
  return kPage + (slots + 1) * layout.bytes() +
         static_cast<std::size_t>(writers) * (kPage + (slots + 1) * layout.unit_bytes());
}

StateArena::StateArena(std::span<std::byte> memory, const ArenaLayout& layout,
                       std::vector<std::string> slots, int writers, bool initialise)
    : memory_(memory), layout_(layout), slots_(std::move(slots)), writers_(writers) {
  YOKE_ENSURE(memory.size() >= bytes_needed(layout_, slots_.size(), writers_), memory.size(),
              " bytes");
  if (!initialise) return;
  Header& head = header();
  if (head.magic == kMagic) clear();
  head.layout = fingerprint_of(layout_, slots_, writers_);
  head.magic = kMagic;
}

void StateArena::clear() {
  std::memset(slot(0), 0, slots_.size() * layout_.bytes());
  end_update(0);
}

void StateArena::check_header() const {
  YOKE_ENSURE_EQ(header().magic, kMagic, "The shared state was never made.");
  YOKE_ENSURE_EQ(header().layout, fingerprint_of(layout_, slots_, writers_),
                 "Ranks lay their state out differently.");
}

bool StateArena::is_of_this_layout() const {
  return header().magic == kMagic && header().layout == fingerprint_of(layout_, slots_, writers_);
}

StateArena::Header& StateArena::header() const {
  return *reinterpret_cast<Header*>(memory_.data());
}

StateArena::Note& StateArena::note(int writer) const {
  std::byte* after = slot(slots_.size());
  return *reinterpret_cast<Note*>(after +
                                  writer * (kPage + (slots_.size() + 1) * layout_.unit_bytes()));
}

std::byte* StateArena::redo(int writer) const {
  return reinterpret_cast<std::byte*>(&note(writer)) + kPage;
}

std::int64_t StateArena::step() const {
  return header().step.load();
}
bool StateArena::updating() const {
  return header().updating.load() != 0;
}

void StateArena::begin_update(std::uint64_t generation, std::int64_t step) {
  header().generation.store(generation);
  header().step.store(step);
  header().updating.store(1);
}

void StateArena::end_update(std::int64_t step) {
  header().step.store(step);
  header().updating.store(0);
  // Notes of a step that is complete, or was given up, say nothing about the next, even if that has
  // the same number.
  const int used = header().writers.exchange(0);
  for (int writer = 0; writer < used; ++writer) note(writer).step_and_one.store(0);
}

void StateArena::copy_into_place(int writer, ByteRange chunk) {
  for (std::size_t arena = 0; arena <= slots_.size(); ++arena) {
    std::memcpy(parameters() + arena * layout_.bytes() + chunk.first,
                redo(writer) + arena * layout_.unit_bytes(), chunk.last - chunk.first);
  }
}

void StateArena::write_chunks(int writer, ByteRange range, const MakeChunk& make,
                              const std::function<void()>& noted) {
  constexpr auto kStore = std::memory_order_relaxed;
  const auto order_stores = [] { std::atomic_thread_fence(std::memory_order_release); };
  Note& mine = note(writer);
  std::vector<std::byte*> fresh;
  for (std::size_t arena = 0; arena <= slots_.size(); ++arena)
    fresh.push_back(redo(writer) + arena * layout_.unit_bytes());
  auto& used = header().writers;
  for (int seen = used.load(); seen <= writer && !used.compare_exchange_weak(seen, writer + 1);) {
  }
  mine.done_until.store(range.first);
  mine.step_and_one.store(step() + 1);
  for (std::size_t first = range.first; first < range.last; first += layout_.unit_bytes()) {
    const ByteRange chunk{first, first + layout_.unit_bytes()};
    make(chunk, fresh.data());
    mine.chunk_first.store(chunk.first, kStore);
    mine.chunk_last.store(chunk.last, kStore);
    order_stores();
    mine.writing.store(1, kStore);
    order_stores();
    if (noted) noted();
    copy_into_place(writer, chunk);
    order_stores();
    mine.done_until.store(chunk.last, kStore);
    order_stores();
    mine.writing.store(0, kStore);
    order_stores();
  }
}

std::size_t StateArena::roll_forward(int writer, ByteRange range) {
  Note& theirs = note(writer);
  if (theirs.step_and_one.load() != step() + 1) return range.first;  // It had not begun this step.
  if (theirs.writing.load() != 0) {
    const ByteRange chunk{theirs.chunk_first.load(), theirs.chunk_last.load()};
    copy_into_place(writer, chunk);  // Once more, if it was through: the same bytes.
    theirs.done_until.store(chunk.last);
  }
  theirs.writing.store(0);
  return theirs.done_until.load();
}

}  // namespace yoke::tensor
