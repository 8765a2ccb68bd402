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
/// Every slice has one writer, who goes chunk by chunk: it makes the new chunk in its redo slot,
/// notes {generation, step, chunk}, copies it into place, notes that it is done. If it dies before
/// the note, the old chunk is untouched; after it, a survivor copies it once more. Either way the
/// survivor finishes the slice from the same gradient, to the same bits (design, section 7; why not
/// an undo slot: docs/decisions/0008-redo-slots.md).
///
/// A chunk is one unit of the layout, a page of float32: it holds elements of one tensor, and its
/// new values are still in the first-level cache when they are copied.
///
/// Memory: header page, parameters, one arena a slot, then a note page and a redo slot for each
/// writer.
class StateArena {
 public:
  /// Bytes that the constructor needs.
  static std::size_t bytes_needed(const ArenaLayout& layout, std::size_t slots, int writers);

  /// `memory` is zero at first, or held a state of this layout, which `initialise` clears; it is
  /// aligned to a page, and outlives the object. All ranks that share it
  /// give the same layout, slots and writers; the one with `initialise` writes the header, before
  /// the others look (a barrier).
  StateArena(std::span<std::byte> memory, const ArenaLayout& layout, std::vector<std::string> slots,
             int writers, bool initialise);
  /// S_0 without its parameters: slots are zero, nobody writes.
  void clear();
  /// Throws InternalError if the header is not of this layout.
  void check_header() const;
  /// Whether it would not.
  bool is_of_this_layout() const;

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

  /// Makes the new bytes of one chunk from the old state. `fresh[0]` is where those of the
  /// parameters go, `fresh[1 + i]` those of slot i; all bytes of the chunk are written.
  using MakeChunk = std::function<void(ByteRange chunk, std::byte* const* fresh)>;
  /// Takes the chunks of `range`, in order, to the next state. `noted` is called before the old
  /// chunk is overwritten (fault points).
  void write_chunks(int writer, ByteRange range, const MakeChunk& make,
                    const std::function<void()>& noted = {});

  /// After the death of `writer`: finishes the chunk that it was copying, if it was, and returns
  /// where its work on `range` in this step must be taken up again (range.last if it was done).
  std::size_t roll_forward(int writer, ByteRange range);

 private:
  static constexpr std::size_t kPage = 4096;
  struct Header;
  struct Note;
  Header& header() const;
  Note& note(int writer) const;
  std::byte* redo(int writer) const;
  void copy_into_place(int writer, ByteRange chunk);

  std::span<std::byte> memory_;
  ArenaLayout layout_;
  std::vector<std::string> slots_;
  int writers_;
};

}  // namespace yoke::tensor
