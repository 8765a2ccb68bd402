#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "yoke/tensor/arena_layout.h"

namespace yoke::tensor {

/// Parameters and optimizer slots in one piece of memory, shared by the ranks of a host or private
/// to one.
///
/// Every slice has one writer. A writer goes chunk by chunk (64 KiB of parameters with their
/// slots): it copies the old chunk to its undo slot, notes {generation, step, chunk}, writes, notes
/// that it is done. If it dies in between, a survivor restores that chunk and finishes the slice
/// from the same gradient, to the same bits (design, section 7).
///
/// Memory: header page, parameters, one arena a slot, then a note page and an undo slot for each
/// writer.
class StateArena {
 public:
  static constexpr std::size_t kChunkBytes = 64 * 1024;

  /// Bytes that the constructor needs.
  static std::size_t bytes_needed(const ArenaLayout& layout, std::size_t slots, int writers);

  /// `memory` is zero at first, aligned to a page, and outlives the object. All ranks that share it
  /// give the same layout, slots and writers; the one with `initialise` writes the header, before
  /// the others look (a barrier).
  StateArena(std::span<std::byte> memory, const ArenaLayout& layout, std::vector<std::string> slots,
             int writers, bool initialise);
  /// Throws InternalError if the header is not of this layout.
  void check_header() const;

  const ArenaLayout& layout() const { return layout_; }
  const std::vector<std::string>& slots() const { return slots_; }
  std::byte* parameters() const { return memory_.data() + kPage; }
  std::byte* slot(std::size_t i) const { return parameters() + (i + 1) * layout_.bytes(); }

  /// Step k of "S_k": the state that lies here, or that is being turned into the next.
  std::int64_t step() const;
  bool updating() const;
  /// Marks the state as being turned from S_k into S_{k+1}. Every rank does so before it writes; a
  /// second call with the same arguments changes nothing.
  void begin_update(std::uint64_t generation, std::int64_t step);
  /// The state is S_{step}, whole: every rank calls it, after a barrier.
  void end_update(std::int64_t step);

  /// Calls `write(chunk)` for the chunks of `range`, in order, under the undo protocol.
  void write_chunks(int writer, ByteRange range, const std::function<void(ByteRange)>& write);

  /// After the death of `writer`: restores the chunk that it was writing, if it was, and returns
  /// where its work on `range` in this step must be taken up again (range.last if it was done).
  std::size_t roll_back(int writer, ByteRange range);

 private:
  static constexpr std::size_t kPage = 4096;
  struct Header;
  struct Note;
  Header& header() const;
  Note& note(int writer) const;
  std::byte* undo(int writer) const;

  std::span<std::byte> memory_;
  ArenaLayout layout_;
  std::vector<std::string> slots_;
  int writers_;
};

}  // namespace yoke::tensor
