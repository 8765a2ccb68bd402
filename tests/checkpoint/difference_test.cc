// Two checkpoints are compared by bits, tensor by tensor.

#include "yoke/checkpoint/difference.h"

#include <gmock/gmock.h>

#include <cmath>
#include <list>

#include "tests/checkpoint/sample.h"
#include "yoke/comm/half.h"

namespace yoke::checkpoint {
namespace {

class Differences : public testing::Test {
 protected:
  template <typename T>
  void hold(std::int64_t step, const std::string& name, DType dtype, const std::vector<T>& values,
            std::vector<std::int64_t> shape) {
    auto& kept = memory_.emplace_back(std::as_bytes(std::span(values)).begin(),
                                      std::as_bytes(std::span(values)).end());
    states_[step].parameters[name] = {dtype, std::move(shape), kept};
  }
  template <typename T>
  void hold(std::int64_t step, const std::string& name, DType dtype, const std::vector<T>& values) {
    hold(step, name, dtype, values, {static_cast<std::int64_t>(values.size())});
  }
  /// "name kind differing/elements largest" of each.
  std::vector<std::string> found() {
    FaultPlan no_faults;
    for (auto& [step, state] : states_) {
      state.step = step;
      write(folder_, state, nullptr, {.keep_last = 9}, no_faults);
    }
    std::vector<std::string> result;
    for (const auto& one : differences(Reader(folder_, 1), Reader(folder_, 2))) {
      result.push_back(cat(one.name.substr(11), " ", one.kind, " ", one.differing, "/",
                           one.elements, " ", one.largest));
    }
    return result;
  }
  const TemporaryFolder temporary_;
  const RunFolder folder_{temporary_.path()};
  std::list<std::vector<std::byte>> memory_;
  std::map<std::int64_t, Snapshot> states_;
};

TEST_F(Differences, AreCountedAndMeasuredInEveryDtype) {
  const auto halves = [](auto convert, std::vector<float> values) {
    std::vector<std::uint16_t> bits;
    for (const float value : values) bits.push_back(convert(value));
    return bits;
  };
  for (const std::int64_t step : {1, 2}) {
    const float d = step == 1 ? 0.0F : 0.5F;
    hold<float>(step, "a.same", DType::kFloat32, {1, -0.0F, NAN});
    hold<float>(step, "b.float32", DType::kFloat32, {1, 2 + d, 3 - 2 * d});
    hold<double>(step, "c.float64", DType::kFloat64, {1e-300, 4 + d});
    hold(step, "d.float16", DType::kFloat16, halves(comm::float16_from_float, {1, 2 + d}));
    hold(step, "e.bfloat16", DType::kBFloat16, halves(comm::bfloat16_from_float, {1 + d, 2}));
    hold<std::int64_t>(step, "f.int64", DType::kInt64, {1, -2 - 3 * step});
    hold<std::uint8_t>(step, "g.uint8", DType::kUInt8,
                       {0, static_cast<std::uint8_t>(254 + step - 1)});
    hold<float>(step, "h.signed zero", DType::kFloat32, {step == 1 ? 0.0F : -0.0F});
    hold<float>(step, "i.nan", DType::kFloat32, {step == 1 ? NAN : 1.0F});
  }
  EXPECT_THAT(found(), testing::ElementsAre("b.float32 values 2/3 1", "c.float64 values 1/2 0.5",
                                            "d.float16 values 1/2 0.5", "e.bfloat16 values 1/2 0.5",
                                            "f.int64 values 1/2 3", "g.uint8 values 1/2 1",
                                            "h.signed zero values 1/1 0", "i.nan values 1/1 inf"));
}

TEST_F(Differences, OfNamesShapesAndDtypesAreSaid) {
  hold<float>(1, "a", DType::kFloat32, {1});
  hold<float>(2, "b", DType::kFloat32, {1});
  hold<float>(1, "c", DType::kFloat32, {1, 2}, {2, 1});
  hold<float>(2, "c", DType::kFloat32, {1, 2}, {1, 2});
  hold<float>(1, "d", DType::kFloat32, {1});
  hold<std::int32_t>(2, "d", DType::kInt32, {1});
  EXPECT_THAT(found(), testing::ElementsAre("a only in A 0/0 0", "b only in B 0/0 0",
                                            "c shape 0/0 0", "d dtype 0/0 0"));
}

}  // namespace
}  // namespace yoke::checkpoint
