#include "yoke/elastic/placement/leaf_draws.h"

#include <atomic>

#include "yoke/base/error.h"
#include "yoke/elastic/placement/dynamic_queue.h"
#include "yoke/net/listen_for_ranks.h"
#include "yoke/net/store_client.h"
#include "yoke/net/store_server.h"

namespace yoke::elastic {

namespace {

/// In the first rank's section of shared memory, which is zero at first.
class SharedBoard final : public DrawBoard {
 public:
  SharedBoard(comm::Communicator& communicator, int draws)
      : sections_(communicator.share((1 + 2 * static_cast<std::size_t>(draws)) * sizeof(Word))),
        words_(reinterpret_cast<Word*>(sections_->of(0).data())),
        draws_(draws) {}

  std::int64_t next_number() override {
    return static_cast<std::int64_t>(words_[0].fetch_add(1, std::memory_order_relaxed));
  }
  void mark_done(int draw, std::uint64_t stamp) override {
    done(draw).store(stamp, std::memory_order_relaxed);
  }
  bool is_done(int draw, std::uint64_t stamp) override {
    return done(draw).load(std::memory_order_relaxed) >= stamp;
  }
  bool claim_repeat(int draw, std::uint64_t stamp) override {
    return words_[1 + draws_ + draw].exchange(stamp, std::memory_order_relaxed) < stamp;
  }

 private:
  // What a worker computed is read after the ranks have met; these say only that it will be there.
  using Word = std::atomic<std::uint64_t>;
  static_assert(Word::is_always_lock_free);
  Word& done(int draw) { return words_[1 + draw]; }

  std::shared_ptr<comm::SharedSections> sections_;
  Word* words_;
  int draws_;
};

/// In a store that rank 0 serves for this alone: a coordinator that is away disturbs no step.
class StoreBoard final : public DrawBoard {
 public:
  StoreBoard(const World& world, Clock::duration timeout, int draws) : timeout_(timeout) {
    const Place& place = world.place();
    const auto deadline = Deadline::after(timeout, world.cancelled());
    const net::Identity self{.job = place.job,
                             .purpose = "draws",
                             .generation = place.generation,
                             .rank = place.rank,
                             .size = place.size};
    const std::string token = net::token_of(world.token(), place.job);
    if (place.rank == 0) {
      auto open = net::listen_for_ranks(place, "", deadline);
      store_ = std::make_shared<net::StoreServer>(std::move(open.socket), self, token,
                                                  Clock::duration::zero());
      // A key that nobody has written yet would be waited for.
      for (int draw = 0; draw < draws; ++draw) {
        store_->set(key("done", draw), "0");
        store_->set(key("repeated", draw), "0");
      }
      world.store().set("draws/at", open.published);
    } else {
      const auto server = net::resolve(world.store().get("draws/at", deadline), deadline);
      net::Address reached;
      auto connection = net::connect_to_store({server}, self, token, deadline, reached);
      store_ = std::make_shared<net::StoreClient>(std::move(connection), reached, self, token);
    }
  }

  std::int64_t next_number() override { return store_->add("next", 1) - 1; }
  void mark_done(int draw, std::uint64_t stamp) override {
    store_->set(key("done", draw), std::to_string(stamp));
  }
  bool is_done(int draw, std::uint64_t stamp) override { return stamp_of("done", draw) >= stamp; }
  bool claim_repeat(int draw, std::uint64_t stamp) override {
    if (stamp_of("repeated", draw) >= stamp) return false;
    store_->set(key("repeated", draw), std::to_string(stamp));
    return true;
  }

 private:
  static std::string key(const char* what, int draw) { return cat(what, "/", draw); }
  std::uint64_t stamp_of(const char* what, int draw) {
    return std::stoull(store_->get(key(what, draw), Deadline::after(timeout_)));
  }

  Clock::duration timeout_;
  std::shared_ptr<net::Store> store_;
};

}  // namespace

std::unique_ptr<DrawBoard> DrawBoard::make(const World& world, comm::Communicator& communicator,
                                           int draws, Clock::duration timeout) {
  if (communicator.transport() == comm::TransportKind::kSharedMemory)
    return std::make_unique<SharedBoard>(communicator, draws);
  return std::make_unique<StoreBoard>(world, timeout, draws);
}

LeafDraws::LeafDraws(std::unique_ptr<DrawBoard> board, int workers)
    : board_(std::move(board)), workers_(workers) {}

namespace {

std::vector<LeafBlock> in_order_of_draws(std::int64_t leaves, int workers) {
  DynamicQueue queue(leaves, workers, {.backup = false});
  std::vector<LeafBlock> blocks;
  while (const auto draw = queue.draw(0)) blocks.push_back(draw->block);
  return blocks;
}

}  // namespace

int LeafDraws::most_draws(std::int64_t leaves, int workers) {
  std::size_t most = 0;
  for (std::int64_t n = 1; n <= leaves; ++n)
    most = std::max(most, in_order_of_draws(n, workers).size());
  return static_cast<int>(most);
}

void LeafDraws::begin(std::int64_t leaves) {
  // Every worker counts one draw further than there are.
  if (stamp_ > 0) base_ += static_cast<std::int64_t>(blocks_.size()) + workers_;
  if (leaves != leaves_) {
    leaves_ = leaves;
    blocks_ = in_order_of_draws(leaves, workers_);
  }
  ++stamp_;
  current_ = -1;
  mine_.assign(blocks_.size() + 1, false);
}

std::optional<LeafDraws::Draw> LeafDraws::next() {
  if (mine_.back()) return repeat();
  const std::int64_t number = board_->next_number() - base_;
  YOKE_ENSURE(number >= 0, "a draw of a step that is over");
  if (number >= static_cast<std::int64_t>(blocks_.size())) {
    mine_.back() = true;
    return repeat();
  }
  current_ = static_cast<int>(number);
  mine_[static_cast<std::size_t>(number)] = true;
  return Draw{blocks_[static_cast<std::size_t>(number)], false};
}

std::optional<LeafDraws::Draw> LeafDraws::repeat() {
  for (int draw = 0; draw < static_cast<int>(blocks_.size()); ++draw) {
    const auto at = static_cast<std::size_t>(draw);
    if (mine_[at] || board_->is_done(draw, stamp_) || !board_->claim_repeat(draw, stamp_)) continue;
    current_ = draw;
    mine_[at] = true;
    return Draw{blocks_[at], true};
  }
  return std::nullopt;
}

bool LeafDraws::overtaken() {
  return board_->is_done(current_, stamp_);
}

void LeafDraws::finish() {
  board_->mark_done(current_, stamp_);
}

}  // namespace yoke::elastic
