#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "yoke/comm/backend.h"
#include "yoke/comm/block_plan.h"
#include "yoke/comm/shm/control_lines.h"
#include "yoke/comm/shm/sections.h"
#include "yoke/net/shm/group.h"
#include "yoke/net/shm/region.h"

namespace yoke::comm {

/// Collectives that read the other ranks' memory. P ranks, N bytes.
///
/// Each rank owns two buffers in shared memory, used in turn by odd and even phases
/// (comm/shm/control_lines.h), each in two parts: `stage` for what others shall read of its data,
/// `result` for what it has reduced. Data longer than a stage goes through in chunks, one phase a
/// chunk, so that staging, reducing and fetching of neighbouring chunks fall between the same two
/// phases.
///
///                              phases               payload of a rank (communicator.h,
///                              TrafficLine)
///   all_reduce, N <= 24        1                    (P - 1) N; the data travels on the control
///   line itself all_reduce, N <= 16 KiB    1                    (P - 1) N; one shot: everyone
///   reads all and reduces all all_reduce, private data   1 + chunks           (P - 1) slice + N -
///   slice, each summed over the chunks all_reduce, in a section   2                    2 (P - 1)
///   slice; nothing is staged: each rank reduces its
///                                                   slice, cut at multiples of 1,024 elements, out
///                                                   of all sections and stores it to all
///   reduce_blocks              1 + chunks           other ranks' blocks of its slice, + N - slice
///   all_gather                 chunks               (P - 1) N, N the part of a rank
///   broadcast                  chunks               N, of the root 0
///   reduce, gather             chunks               root (P - 1) N, others 0
///   reduce_scatter, all_to_all chunks               (P - 1) part
///   scatter                    chunks               part, of the root 0
///   barrier                    1                    0
///
/// Sums are canonical: the ranks (or blocks) are the leaves of a BlockPlan.
class Direct {
 public:
  static constexpr std::size_t kOneShotBytes = std::size_t{16} << 10;
  static constexpr std::size_t kStageBytes = std::size_t{256} << 10;

  /// Collective over the group.
  Direct(std::shared_ptr<net::ShmGroup> group, net::SharedMemory& memory, Deadline deadline);

  /// Compares the calls of all ranks, as every collective does first.
  void barrier(const Call& call) { begin_call(call); }
  /// The same before a call that runs by messages; counted as nothing, so that such a call has the
  /// bytes and messages that its topology says.
  void compare(const Call& call) { lines_.begin(call.tag, 0, {}, call.deadline); }

  void all_reduce(const Call& call, std::span<std::byte> data);
  void reduce_scatter(const Call& call, std::span<const std::byte> in, std::span<std::byte> out);
  void all_gather(const Call& call, std::span<const std::byte> in, std::span<std::byte> out);
  void reduce(const Call& call, std::span<std::byte> data);
  void broadcast(const Call& call, std::span<std::byte> data);
  void all_to_all(const Call& call, std::span<const std::byte> in, std::span<std::byte> out);
  void gather(const Call& call, std::span<const std::byte> in, std::span<std::byte> out);
  void scatter(const Call& call, std::span<const std::byte> in, std::span<std::byte> out);
  void reduce_blocks(const Call& call, const BlockPlan& plan,
                     std::span<const std::span<const std::byte>> mine, std::span<std::byte> out);
  std::shared_ptr<SharedSections> share(const Call& call, std::size_t bytes_per_rank);

  net::TransportCounters counters() const;

 private:
  using Blocks = std::span<const std::span<const std::byte>>;

  int rank() const { return group_->rank(); }
  int size() const { return group_->size(); }
  /// Memory of `rank` that is written before `phase` and read by others after it.
  std::byte* stage(int rank, std::uint32_t phase) const;
  std::byte* result(int rank, std::uint32_t phase) const {
    return stage(rank, phase) + kStageBytes;
  }
  std::byte* next_stage() const { return stage(rank(), lines_.next()); }
  std::byte* next_result() const { return result(rank(), lines_.next()); }
  std::uint32_t phase() const { return lines_.next() - 1; }

  void begin_call(const Call& call, std::uint64_t detail = 0,
                  std::span<const std::byte> payload = {});
  void advance(const Call& call);
  /// Of other ranks' memory, or into it.
  void count(std::size_t bytes);
  void fetch(std::byte* to, int from, const std::byte* at, std::size_t bytes);

  void one_shot(const Call& call, const BlockPlan& plan, Blocks mine, std::span<std::byte> out);
  void staged(const Call& call, const BlockPlan& plan, Blocks mine, std::span<std::byte> out,
              std::uint64_t detail);
  void in_sections(const Call& call, SharedSections& sections, std::size_t offset,
                   std::size_t elements);
  void finish_mean(const Call& call, std::byte* data, std::size_t elements) const;
  template <typename Stage, typename Fetch>
  void chunked(const Call& call, std::size_t bytes, std::size_t chunk, const Stage& stage,
               const Fetch& fetch);

  const std::shared_ptr<net::ShmGroup> group_;
  net::SharedMemory& memory_;
  const std::shared_ptr<net::SharedRegion> region_;
  ControlLines lines_;
  const BlockPlan one_each_;
  SectionTable sections_;
  std::vector<const std::byte*> operands_;  ///< of one_shot(), kept for its memory
  /// Written by the caller alone; atomic for whoever reads them meanwhile.
  std::atomic<std::uint64_t> payload_bytes_{0};
  std::atomic<std::uint64_t> messages_{0};
};

}  // namespace yoke::comm
