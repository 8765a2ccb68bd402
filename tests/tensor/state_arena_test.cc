// Design, section 7: a writer that dies anywhere in an update leaves a state from which a survivor
// finishes the update to the same bits.

#include "yoke/tensor/state_arena.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "yoke/base/error.h"
#include "yoke/base/random.h"
#include "yoke/optim/optimizer.h"

namespace yoke::tensor {
namespace {

constexpr std::int64_t kStep = 4;
constexpr std::size_t kUnitElements = 1024;

/// Memory that a forked process shares with us.
class SharedPages {
 public:
  explicit SharedPages(std::size_t bytes) : bytes_(bytes) {
    void* memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    YOKE_ENSURE(memory != MAP_FAILED, bytes);
    memory_ = static_cast<std::byte*>(memory);
  }
  ~SharedPages() { ::munmap(memory_, bytes_); }
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;
  std::span<std::byte> span() const { return {memory_, bytes_}; }

 private:
  std::byte* memory_;
  std::size_t bytes_;
};

optim::OptimizerOptions momentum() {
  return {.name = "sgd", .lr = 0.1, .momentum = 0.9, .weight_decay = 0.01};
}
optim::OptimizerOptions adam() {
  return {.name = "adam", .lr = 0.01};
}

/// One update of the elements of a layout by one of the optimizers.
class Update {
 public:
  Update(const ArenaLayout& layout, const optim::OptimizerOptions& options)
      : layout_(layout),
        optimizer_(optim::Optimizer::make(options)),
        gradient_(layout.bytes() / sizeof(float)) {
    RandomKey(3).normal(gradient_);
  }

  std::vector<std::string> slots() const { return optimizer_->slots(); }
  std::size_t bytes(int writers) const {
    return StateArena::bytes_needed(layout_, slots().size(), writers);
  }
  StateArena make(std::span<std::byte> memory, int writers, bool initialise) const {
    return {memory, layout_, slots(), writers, initialise};
  }

  /// S_4, with the update begun.
  void begin(StateArena& arena) const {
    const std::size_t elements = layout_.bytes() / sizeof(float);
    RandomKey(1).normal({reinterpret_cast<float*>(arena.parameters()), elements});
    for (std::size_t s = 0; s < slots().size(); ++s)
      RandomKey(2).with(s).uniform({reinterpret_cast<float*>(arena.slot(s)), elements});
    arena.end_update(kStep);
    arena.begin_update(0, kStep);
  }

  void chunk(StateArena& arena, ByteRange range, std::byte* const* fresh) const {
    const auto old = [&](std::size_t a) {
      return reinterpret_cast<const float*>(arena.parameters() + a * layout_.bytes() + range.first);
    };
    optim::Elements<float> elements;
    elements.count = (range.last - range.first) / sizeof(float);
    elements.gradients = gradient_.data() + range.first / sizeof(float);
    elements.parameters = old(0);
    elements.new_parameters = reinterpret_cast<float*>(fresh[0]);
    for (std::size_t s = 0; s < arena.slots().size(); ++s) {
      elements.slots[s] = old(s + 1);
      elements.new_slots[s] = reinterpret_cast<float*>(fresh[s + 1]);
    }
    optimizer_->step(elements, 0.1, kStep, 0.5);
  }
  void finish(StateArena& arena, int writer, ByteRange range) const {
    arena.write_chunks(writer, range, [&](ByteRange chunk, std::byte* const* fresh) {
      this->chunk(arena, chunk, fresh);
    });
  }
  void finish_for(StateArena& arena, int dead, ByteRange range) const {
    finish(arena, dead, {arena.roll_forward(dead, range), range.last});
  }

  /// Parameters and slots.
  std::vector<std::byte> state(const StateArena& arena) const {
    return {arena.parameters(), arena.slot(slots().size())};
  }
  /// What an update without any death makes.
  std::vector<std::byte> undisturbed(int writers) const {
    std::vector<std::byte> memory(bytes(writers));
    StateArena arena = make(memory, writers, true);
    begin(arena);
    for (int writer = 0; writer < writers; ++writer)
      finish(arena, writer, layout_.slice(writer, writers));
    return state(arena);
  }

 private:
  ArenaLayout layout_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::vector<float> gradient_;
};

ArenaLayout layout_of(std::size_t units) {
  ArenaLayout::Entry entry;
  entry.name = "w";
  entry.dtype = DType::kFloat32;
  entry.elements = units * kUnitElements - 5;
  entry.shape = {static_cast<std::int64_t>(entry.elements)};
  return ArenaLayout({entry}, DType::kFloat32);
}

/// Runs `work` in a process that must end by SIGKILL.
void expect_killed(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

TEST(StateArena, ASurvivorFinishesWhatAKilledWriterBegan) {
  enum Where { kBefore, kMade, kNoted, kTorn };
  for (const auto& options : {momentum(), adam(), optim::OptimizerOptions{.name = "sgd"}}) {
    for (const std::size_t units : {1, 2, 7}) {
      const ArenaLayout layout = layout_of(units);
      const Update update(layout, options);
      const auto expected = update.undisturbed(2);
      const ByteRange slice = layout.slice(1, 2);
      const std::size_t chunks = (slice.last - slice.first) / layout.unit_bytes();
      for (std::size_t victim = 0; victim < chunks; ++victim) {
        for (const Where where : {kBefore, kMade, kNoted, kTorn}) {
          const SharedPages pages(update.bytes(2));
          StateArena arena = update.make(pages.span(), 2, true);
          update.begin(arena);
          expect_killed([&] {
            StateArena theirs = update.make(pages.span(), 2, false);
            theirs.begin_update(0, kStep);
            std::size_t at = 0;
            const auto dies = [&](Where here) { return at == victim && where == here; };
            theirs.write_chunks(
                1, slice,
                [&](ByteRange chunk, std::byte* const* fresh) {
                  if (dies(kBefore)) ::raise(SIGKILL);
                  update.chunk(theirs, chunk, fresh);
                  if (dies(kMade)) ::raise(SIGKILL);
                },
                [&] {
                  if (dies(kNoted)) ::raise(SIGKILL);
                  if (dies(kTorn)) {  // The half of it is overwritten, with whatever.
                    const std::size_t first = slice.first + at * layout.unit_bytes();
                    std::memset(theirs.parameters() + first, 0x55, layout.unit_bytes() / 2);
                    for (std::size_t s = 0; s < theirs.slots().size(); ++s)
                      std::memset(theirs.slot(s) + first, 0x55, layout.unit_bytes());
                    ::raise(SIGKILL);
                  }
                  ++at;
                });
          });
          arena.check_header();
          EXPECT_TRUE(arena.updating());
          EXPECT_EQ(arena.step(), kStep);
          update.finish(arena, 0, layout.slice(0, 2));
          update.finish_for(arena, 1, slice);
          ASSERT_EQ(update.state(arena), expected)
              << options.name << ", " << units << " units, chunk " << victim << ", point " << where;
        }
      }
    }
  }
}

/// Lets `work` run instruction by instruction in a process, and calls `look` after each.
void single_step(const std::function<void()>& work, const std::function<void()>& look) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(1);
    ::raise(SIGSTOP);
    work();
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSTOPPED(status)) << "ptrace is not permitted here";
  for (;;) {
    ASSERT_EQ(::ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr), 0);
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (!WIFSTOPPED(status) || WSTOPSIG(status) == SIGSTOP) break;
    look();
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
}

// What lies in memory after each instruction is what a kill there would leave.
TEST(StateArena, AnUpdateCanBeFinishedAfterEveryInstructionOfIt) {
  const ArenaLayout layout = layout_of(3);
  const Update update(layout, momentum());
  const ByteRange all = layout.slice(0, 1);
  const auto expected = update.undisturbed(1);
  const SharedPages pages(update.bytes(1));
  StateArena arena = update.make(pages.span(), 1, true);
  update.begin(arena);

  const std::span<std::byte> memory = pages.span();
  std::vector<std::byte> last(memory.begin(), memory.end()), copy(memory.size());
  const std::size_t note =
      static_cast<std::size_t>(arena.slot(arena.slots().size()) - memory.data());
  std::size_t states = 0, tried = 0, wrong = 0;
  single_step([&] { update.finish(arena, 0, all); },
              [&] {
                const bool note_changed = std::memcmp(&memory[note], &last[note], 4096) != 0;
                if (!note_changed && ++states % 20 != 0) return;
                if (std::memcmp(memory.data(), last.data(), memory.size()) == 0) return;
                std::copy(memory.begin(), memory.end(), last.begin());
                std::copy(memory.begin(), memory.end(), copy.begin());
                StateArena survivors = update.make(copy, 1, false);
                update.finish_for(survivors, 0, all);
                ++tried;
                wrong += update.state(survivors) != expected;
              });
  EXPECT_EQ(wrong, 0u) << "of " << tried << " states";
  EXPECT_GT(tried, 100u);
  EXPECT_EQ(update.state(arena), expected);
}

TEST(StateArena, ADeathBetweenStepsTouchesNothing) {
  const ArenaLayout layout = layout_of(40);
  const Update update(layout, adam());
  std::vector<std::byte> memory(update.bytes(2));
  StateArena arena = update.make(memory, 2, true);
  const ByteRange slice = layout.slice(1, 2);
  update.begin(arena);
  EXPECT_EQ(arena.roll_forward(1, slice), slice.first) << "it had not begun";
  update.finish(arena, 1, slice);
  EXPECT_EQ(arena.roll_forward(1, slice), slice.last) << "it was done";
  arena.end_update(kStep + 1);
  EXPECT_FALSE(arena.updating());
  arena.begin_update(0, kStep + 1);
  EXPECT_EQ(arena.roll_forward(1, slice), slice.first)
      << "the step before says nothing of this one";
  // The state is set back, and the same step is taken again.
  update.finish(arena, 1, slice);
  arena.end_update(kStep + 1);
  arena.begin_update(1, kStep + 1);
  EXPECT_EQ(arena.roll_forward(1, slice), slice.first)
      << "its first try says nothing of the second";
}

TEST(StateArena, RanksThatLayItOutDifferentlyAreFound) {
  const ArenaLayout layout = layout_of(3);
  std::vector<std::byte> memory(StateArena::bytes_needed(layout, 2, 3));
  StateArena(memory, layout, {"a"}, 2, true).check_header();
  EXPECT_THROW(StateArena(memory, layout, {"b"}, 2, false).check_header(), InternalError);
  EXPECT_THROW(StateArena(memory, layout, {"a"}, 3, false).check_header(), InternalError);
  EXPECT_THROW(StateArena(memory, layout_of(2), {"a"}, 2, false).check_header(), InternalError);
  EXPECT_THROW(StateArena(std::span(memory).first(4096), layout, {"a"}, 2, true), InternalError);
  std::vector<std::byte> never_made(memory.size());
  EXPECT_THROW(StateArena(never_made, layout, {"a"}, 2, false).check_header(), InternalError);
}

}  // namespace
}  // namespace yoke::tensor
