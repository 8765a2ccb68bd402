#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "yoke/base/files.h"
#include "yoke/base/random.h"
#include "yoke/checkpoint/reader.h"
#include "yoke/checkpoint/writer.h"

namespace yoke::test {

/// A small state with something in every part, drawn by `seed`, and the memory that it views.
class SampleState {
 public:
  SampleState(std::int64_t step, std::uint64_t seed) : count_(static_cast<std::int64_t>(seed)) {
    RandomKey(seed).normal(weight_);
    RandomKey(seed + 1).normal(moment_);
    RandomKey(seed + 2).normal(statistics_);
    weight_[3] = -0.0F;
    snapshot.step = step;
    snapshot.parameters["fc.weight"] = {DType::kFloat32, {7, 30}, bytes(weight_)};
    snapshot.parameters["empty"] = {DType::kFloat32, {0, 4}, {}};
    snapshot.buffers["running"] = {DType::kFloat64, {11}, bytes(statistics_)};
    snapshot.optimizer["fc.weight/exp_avg"] = {DType::kFloat32, {7, 30}, bytes(moment_)};
    snapshot.optimizer["fc.weight/step"] = {DType::kInt64, {}, {bytes(count_)}};
    snapshot.train["best_loss"] = {DType::kFloat64, {}, bytes(best_)};
  }
  SampleState(const SampleState&) = delete;
  SampleState& operator=(const SampleState&) = delete;

  checkpoint::Snapshot snapshot;
  /// Large enough that the manifest is longer than the shard.
  nlohmann::json extra() const { return {{"seed", count_}, {"note", std::string(600, 'n')}}; }

 private:
  template <typename T>
  static std::span<const std::byte> bytes(const std::vector<T>& values) {
    return std::as_bytes(std::span(values));
  }
  template <typename T>
  static std::span<const std::byte> bytes(const T& value) {
    return std::as_bytes(std::span(&value, 1));
  }

  std::vector<float> weight_ = std::vector<float>(210);
  std::vector<float> moment_ = std::vector<float>(210);
  std::vector<double> statistics_ = std::vector<double>(11);
  std::int64_t count_;
  double best_ = 0.25;
};

inline void save(const RunFolder& folder, std::int64_t step, std::uint64_t seed,
                 std::int64_t keep_last = 2, FaultPlan faults = {}) {
  const SampleState state(step, seed);
  checkpoint::write(folder, state.snapshot, state.extra(), {.keep_last = keep_last}, faults);
}

inline void save(const RunFolder& folder, std::int64_t step, std::uint64_t seed,
                 const checkpoint::WriteOptions& options) {
  const SampleState state(step, seed);
  FaultPlan no_faults;
  checkpoint::write(folder, state.snapshot, state.extra(), options, no_faults);
}

/// Every byte of it, as written by save().
inline void expect_is(const checkpoint::Reader& reader, std::int64_t step, std::uint64_t seed) {
  const SampleState state(step, seed);
  const auto want = state.snapshot.all();
  const auto found = reader.snapshot().all();
  ASSERT_EQ(found.size(), want.size());
  EXPECT_EQ(reader.step(), step);
  EXPECT_EQ(reader.run(), state.extra());
  for (const auto& [name, tensor] : want) {
    const auto& other = found.at(name);
    EXPECT_EQ(other.dtype, tensor.dtype) << name;
    EXPECT_EQ(other.shape, tensor.shape) << name;
    EXPECT_TRUE(std::ranges::equal(other.bytes, tensor.bytes)) << name;
  }
}

/// Names of what lies in the folder of the checkpoints.
inline std::vector<std::string> listing(const RunFolder& folder) {
  std::vector<std::string> names;
  for (const auto& item : std::filesystem::directory_iterator(folder.checkpoints()))
    names.push_back(item.path().filename().string());
  std::ranges::sort(names);
  return names;
}

inline void put(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

}  // namespace yoke::test
