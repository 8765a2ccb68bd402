#pragma once

#include <vector>

#include "yoke/base/random.h"
#include "yoke/elastic/placement/policy.h"

namespace yoke::elastic {

/// Policies that hand out one piece after another, each to some worker, so that neighbours may go
/// to different ones: what costs more (long samples that lie together) is spread.
///
/// Pieces are aligned blocks of one size, the largest power of two that leaves at least
/// `pieces_per_worker` pieces for each worker (single leaves where there are fewer), and at the end
/// one piece of what is left over. So there are at most 2 * pieces_per_worker * W pieces, and the
/// plan has at most so many blocks and log2 V more for what is left over; each worker at most as
/// many. More pieces follow the intended shares more closely and cost more partial sums.
class ScatteredPolicy : public PlacementPolicy {
 public:
  comm::BlockPlan place(std::int64_t leaves, std::span<const Worker> workers,
                        std::uint64_t step) const final;
  int most_blocks(std::int64_t leaves, int workers) const final;

 protected:
  explicit ScatteredPolicy(int pieces_per_worker);
  /// The worker of each piece; sizes[i] is the number of leaves of piece i.
  virtual std::vector<int> assign(std::span<const std::int64_t> sizes,
                                  std::span<const Worker> workers, std::uint64_t step) const = 0;

 private:
  int pieces_per_worker_;
};

constexpr int kPiecesPerWorker = 4;

/// Turns in proportion to `weight`, and as evenly mixed as can be (the smooth form of nginx): of
/// weights 5, 1, 1 the turns are a a b a c a a, where the plain form has a a a a a b c. After
/// sum(weights) turns of whole numbers each worker has had exactly its weight.
class WeightedRoundRobin final : public ScatteredPolicy {
 public:
  explicit WeightedRoundRobin(int pieces_per_worker = kPiecesPerWorker)
      : ScatteredPolicy(pieces_per_worker) {}
  std::string name() const override { return "weighted"; }

 protected:
  std::vector<int> assign(std::span<const std::int64_t> sizes, std::span<const Worker> workers,
                          std::uint64_t step) const override;
};

/// Each piece to a worker drawn by lot, anew in each step. With n leaves on n workers the busiest
/// gets about ln n / ln ln n.
class Random final : public ScatteredPolicy {
 public:
  explicit Random(std::uint64_t seed, int pieces_per_worker = kPiecesPerWorker)
      : ScatteredPolicy(pieces_per_worker), key_(RandomKey(seed).with("random placement")) {}
  std::string name() const override { return "random"; }

 protected:
  std::vector<int> assign(std::span<const std::int64_t> sizes, std::span<const Worker> workers,
                          std::uint64_t step) const override;

 private:
  RandomKey key_;
};

/// Each piece to the least loaded of `choices` workers drawn by lot (Azar, Broder, Karlin, Upfal:
/// "Balanced allocations", 1994). With n leaves on n workers the busiest gets about ln ln n / ln d:
/// two choices are far better than one, and need to know the load of two workers alone.
class PowerOfChoices final : public ScatteredPolicy {
 public:
  explicit PowerOfChoices(std::uint64_t seed, int choices = 2,
                          int pieces_per_worker = kPiecesPerWorker);
  std::string name() const override { return "power-of-choices"; }

 protected:
  std::vector<int> assign(std::span<const std::int64_t> sizes, std::span<const Worker> workers,
                          std::uint64_t step) const override;

 private:
  RandomKey key_;
  int choices_;
};

}  // namespace yoke::elastic
