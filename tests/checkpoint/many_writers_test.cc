// A checkpoint that W ranks wrote together is read by W' others, byte by byte, and each of them
// reads no more than its part.

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <list>

#include "tests/checkpoint/sample.h"
#include "yoke/checkpoint/attempt.h"

namespace yoke::checkpoint {
namespace {

using testing::HasSubstr;

/// Element ranges [cuts[r], cuts[r + 1]) of `elements` for `parts` ranks; some may be empty.
std::vector<std::uint64_t> cuts_of(std::uint64_t elements, int parts) {
  std::vector<std::uint64_t> cuts;
  for (int r = 0; r <= parts; ++r)
    cuts.push_back(elements * static_cast<std::uint64_t>(r) / static_cast<std::uint64_t>(parts));
  return cuts;
}

TensorIndex index_of(const tensor::NamedTensors& tensors) {
  TensorIndex index;
  for (const auto& [name, tensor] : tensors) index[name] = {tensor.dtype, tensor.shape};
  return index;
}

/// What rank `rank` of `world` holds.
std::vector<Slice> slices_of(const tensor::NamedTensors& tensors, int rank, int world) {
  std::vector<Slice> slices;
  for (const auto& [name, tensor] : tensors) {
    const std::size_t width = size_of(tensor.dtype);
    const auto cuts = cuts_of(tensor.bytes.size() / width, world);
    const auto r = static_cast<std::size_t>(rank);
    if (cuts[r] == cuts[r + 1]) continue;
    slices.push_back({name, tensor.dtype, cuts[r],
                      tensor.bytes.subspan(cuts[r] * width, (cuts[r + 1] - cuts[r]) * width)});
  }
  return slices;
}

void write_by(int world, const RunFolder& folder, const Snapshot& snapshot) {
  const auto all = snapshot.all();
  const Attempt attempt(folder, snapshot.step, 7);
  attempt.begin();
  std::vector<Shard> shards;
  for (int rank = 0; rank < world; ++rank) {
    // As it travels to the rank that commits.
    const std::string text = attempt.write_shard(rank, slices_of(all, rank, world)).to_text();
    shards.push_back(Shard::from_text(text));
  }
  FaultPlan no_faults;
  attempt.commit(index_of(all), shards, nullptr, {.generation = 7, .world_size = world}, no_faults);
}

/// Every rank reads its part of every tensor; the parts, one after another.
std::map<std::string, std::vector<std::byte>> read_by(int world, const RunFolder& folder,
                                                      std::int64_t step) {
  std::map<std::string, std::vector<std::byte>> together;
  for (int rank = 0; rank < world; ++rank) {
    const Reader reader(folder, step, Verify::kWhatIsRead);
    for (const auto& [name, tensor] : reader.contents().tensors) {
      const auto cuts = cuts_of(tensor.elements, world);
      const auto r = static_cast<std::size_t>(rank);
      std::vector<std::byte> part((cuts[r + 1] - cuts[r]) * size_of(tensor.dtype));
      reader.read_range(name, cuts[r], part);
      auto& whole = together[name];
      whole.insert(whole.end(), part.begin(), part.end());
    }
  }
  return together;
}

/// A state of tensors with these numbers of elements.
class OddState {
 public:
  explicit OddState(const std::vector<std::size_t>& sizes) {
    snapshot.step = 5;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      auto& memory = memory_.emplace_back(sizes[i] * (i % 2 == 0 ? 4 : 8));
      for (std::size_t at = 0; at < memory.size(); ++at)
        memory[at] = static_cast<std::byte>(at * 31 + i);
      auto& part = i % 3 == 0 ? snapshot.parameters : snapshot.optimizer;
      part[cat("t", i)] = {i % 2 == 0 ? DType::kFloat32 : DType::kInt64,
                           {static_cast<std::int64_t>(sizes[i])},
                           memory};
    }
  }
  Snapshot snapshot;

 private:
  std::list<std::vector<std::byte>> memory_;
};

constexpr int kWorlds[] = {1, 2, 3, 4, 6, 8};

void expect_identity(const std::vector<std::size_t>& sizes, int writers, int readers) {
  const TemporaryFolder temporary;
  const RunFolder folder(temporary.path());
  const OddState state(sizes);
  write_by(writers, folder, state.snapshot);
  const auto found = read_by(readers, folder, 5);
  const auto want = state.snapshot.all();
  RC_ASSERT(found.size() == want.size());
  for (const auto& [name, tensor] : want)
    RC_ASSERT(std::ranges::equal(found.at(name), tensor.bytes));
}

TEST(ManyWriters, AnyNumberReadsWhatAnyNumberWrote) {
  for (const int writers : kWorlds) {
    for (const int readers : kWorlds) {
      expect_identity({1, 7, 1023, 1025, 4099, 0, 24}, writers, readers);
    }
  }
}

RC_GTEST_PROP(ManyWriters, SizesDoNotMatter, ()) {
  const auto sizes =
      *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, 3000));
  expect_identity(sizes,
                  *rc::gen::elementOf(std::vector<int>(std::begin(kWorlds), std::end(kWorlds))),
                  *rc::gen::inRange(1, 9));
}

TEST(ManyWriters, AreOneCheckpointToEveryReader) {
  const TemporaryFolder temporary;
  const RunFolder folder(temporary.path());
  const OddState state({5, 4099, 77});
  write_by(3, folder, state.snapshot);
  const Reader reader(folder, 5);
  EXPECT_EQ(hashes_of(reader.snapshot()).state_sha256, hashes_of(state.snapshot).state_sha256);
  EXPECT_EQ(reader.contents().files.size(), 3u);
  EXPECT_EQ(reader.contents().world_size, 3);
  EXPECT_EQ(read_file(folder.latest()), "step-00000005\n");
}

TEST(ManyWriters, WhatIsNotThereOnceAndWholeIsNotCommitted) {
  const OddState state({100});
  const auto all = state.snapshot.all();
  const auto index = index_of(all);
  const auto bytes = all.at("parameters/t0").bytes;
  const auto slice = [&](std::uint64_t first, std::uint64_t count) {
    return Slice{"parameters/t0", DType::kFloat32, first, bytes.subspan(first * 4, count * 4)};
  };
  const std::vector<std::vector<Slice>> wrong{
      {slice(0, 99)},
      {slice(0, 50), slice(51, 49)},
      {slice(0, 51), slice(50, 50)},
      {slice(0, 100), slice(0, 100)},
      {slice(0, 100), {"parameters/x", DType::kInt8, 0, {}}},
      {}};
  for (const auto& slices : wrong) {
    const TemporaryFolder temporary;
    const RunFolder folder(temporary.path());
    test::save(folder, 1, 10);
    const auto before = test::listing(folder);
    const Attempt attempt(folder, 5, 0);
    attempt.begin();
    std::vector<Shard> shards;
    for (std::size_t i = 0; i < slices.size(); ++i)
      shards.push_back(attempt.write_shard(static_cast<int>(i), std::span(slices).subspan(i, 1)));
    FaultPlan no_faults;
    EXPECT_THROW(attempt.commit(index, shards, nullptr, {}, no_faults), CheckpointError);
    attempt.abandon();
    EXPECT_EQ(test::listing(folder), before);
  }
  EXPECT_THROW(Shard::from_text("{"), CheckpointError);
  EXPECT_THROW(Shard::from_text("{}"), CheckpointError);
}

TEST(ManyWriters, AReaderLooksOnlyAtTheFilesItNeeds) {
  const TemporaryFolder temporary;
  const RunFolder folder(temporary.path());
  const OddState state({1000});
  write_by(4, folder, state.snapshot);
  std::string content = read_file(folder.checkpoint(5) / "shard-0002.bin");
  content[9] ^= 1;
  test::put(folder.checkpoint(5) / "shard-0002.bin", content);
  EXPECT_THROW(Reader(folder, 5), CheckpointError);
  const Reader reader(folder, 5, Verify::kWhatIsRead);
  std::vector<std::byte> part(250 * 4);
  for (const std::uint64_t first : {0, 250, 750}) reader.read_range("parameters/t0", first, part);
  try {
    reader.read_range("parameters/t0", 251, part);
    FAIL() << "the damaged part was read";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("shard-0002.bin"));
  }
  EXPECT_THROW(reader.read_range("parameters/t0", 751, part), CheckpointError) << "beyond the end";
  EXPECT_THROW(reader.read_range("parameters/t0", ~std::uint64_t{0}, part), CheckpointError);
}

TEST(ManyWriters, AReaderOfAPartHoldsThatPartAndNoMore) {
  const TemporaryFolder temporary;
  const RunFolder folder(temporary.path());
  {
    const OddState state({16 << 20});  // 64 MiB
    write_by(2, folder, state.snapshot);
  }
  const pid_t child = ::fork();
  if (child == 0) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t now = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const rlimit little{now + (16 << 20), now + (16 << 20)};
    ::setrlimit(RLIMIT_AS, &little);
    int code = 0;
    try {
      const Reader reader(folder, 5);  // verifies all of it
      std::vector<std::byte> part(1 << 20);
      reader.read_range("parameters/t0", 12345, part);
      code = 1;
      reader.snapshot();
      code = 2;  // The limit does not limit.
    } catch (const std::bad_alloc&) {
      code = code == 1 ? 0 : 3;
    } catch (...) {
      code = 4;
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace yoke::checkpoint
