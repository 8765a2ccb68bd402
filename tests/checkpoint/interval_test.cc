// The best interval between checkpoints, against the closed form and published figures.

#include "yoke/checkpoint/interval.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/checkpoint/sample.h"
#include "yoke/base/error.h"

namespace yoke::checkpoint {
namespace {

TEST(Interval, IsThatOfTheClosedForm) {
  const Seconds mean_time(3.09 * 3600);  // between failures of 16,384 GPUs (Llama 3, 54 days)
  const auto expect = [&](double cost, double interval, double waste) {
    const Seconds best = best_interval(Seconds(cost), mean_time);
    EXPECT_NEAR(best.count(), interval, 0.5) << cost;
    EXPECT_NEAR(expected_waste(Seconds(cost), best, mean_time), waste, 0.0005) << cost;
  };
  expect(0.78, 132, 0.012);
  expect(5, 334, 0.030);
  expect(60, 1155, 0.104);
}

TEST(Interval, WastesLessThanAnyOther) {
  for (const double cost : {0.01, 1.0, 30.0}) {
    for (const double mean_time : {60.0, 3600.0, 1e6}) {
      const Seconds c(cost), m(mean_time), best = best_interval(c, m);
      const double least = expected_waste(c, best, m);
      for (const double factor : {0.25, 0.9, 1.1, 4.0})
        EXPECT_GT(expected_waste(c, best * factor, m), least);
      EXPECT_NEAR(least, std::sqrt(2 * cost / mean_time), 1e-12);
    }
  }
  EXPECT_THROW(best_interval(Seconds(0), Seconds(1)), InternalError);
}

class MeanTime : public testing::Test {
 protected:
  void event(const std::string& time, const std::string& cause) {
    text_ += cat(R"({"time":"2026-11-)", time, R"(Z","cause":")", cause, "\"}\n");
  }
  Seconds found() {
    test::put(file_, text_);
    return mean_time_between_failures(file_);
  }
  const TemporaryFolder temporary_;
  const std::filesystem::path file_ = temporary_.path() / "events.jsonl";
  std::string text_;
};

TEST_F(MeanTime, IsADayUntilSomethingFails) {
  EXPECT_EQ(mean_time_between_failures(file_), Seconds(86400)) << "no file";
  EXPECT_EQ(found(), Seconds(86400));
  event("30T10:00:00.000", "start");
  event("30T11:00:00.000", "resize");
  event("30T12:00:00.000", "preempted");
  EXPECT_EQ(found(), Seconds(86400));
}

TEST_F(MeanTime, CountsTheTimeThatWasRun) {
  event("29T23:00:00.000", "start");
  event("30T00:00:00.500", "killed");  // 3600.5 s
  event("30T09:00:00.000", "start");   // it stood still
  event("30T09:10:00.000", "join");    // 600 s
  event("30T09:20:00.000", "hung");    // 600 s
  text_ += "not json\n[]\n{\"cause\":3}\n{\"time\":\"yesterday\",\"cause\":\"killed\"}\n";
  event("30T09:20:01.000", "start");
  EXPECT_NEAR(found().count(), (3600.5 + 1200) / 2, 1e-3);
}

TEST_F(MeanTime, IsNeverZero) {
  event("30T10:00:00.000", "start");
  event("30T09:00:00.000", "killed");  // the clock was set back
  EXPECT_EQ(found(), Seconds(1));
}

}  // namespace
}  // namespace yoke::checkpoint
