#include "yoke/elastic/placement/speed_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "yoke/base/error.h"

namespace yoke::elastic {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

TEST(SpeedMeter, AConstantSpeedIsKnownFromTheFirstStep) {
  SpeedMeter meter;
  for (const std::int64_t leaves : {8, 3, 100}) {
    meter.note(0, leaves, static_cast<double>(leaves) / 40);
    EXPECT_NEAR(meter.speeds(1)[0], 40, 1e-12);
  }
}

TEST(SpeedMeter, AfterItsHalfLifeAStepCountsHalf) {
  SpeedMeter meter(3);
  // Ten leaves a step: in 1 second each for very long, then in 2 seconds for three steps. The three
  // weigh 1 + k + k^2 and all before them k^3 / (1 - k), which is as much, with k^3 = 1/2.
  for (int step = 0; step < 500; ++step) meter.note(0, 10, 1);
  for (int step = 0; step < 3; ++step) meter.note(0, 10, 2);
  EXPECT_NEAR(meter.speeds(1)[0], 10 / 1.5, 1e-9);
}

TEST(SpeedMeter, AWorkerThatIsNewCountsAsTheMean) {
  SpeedMeter meter;
  EXPECT_THAT(meter.speeds(2), ElementsAre(1, 1));
  meter.note(0, 10, 1);
  meter.note(2, 20, 1);
  EXPECT_THAT(meter.speeds(4), ElementsAre(DoubleNear(10, 1e-9), DoubleNear(15, 1e-9),
                                           DoubleNear(20, 1e-9), DoubleNear(15, 1e-9)));
  meter.forget(2);
  EXPECT_THAT(meter.speeds(3),
              ElementsAre(DoubleNear(10, 1e-9), DoubleNear(10, 1e-9), DoubleNear(10, 1e-9)));
}

TEST(SpeedMeter, StepsThatSayNothingAreLeftOut) {
  SpeedMeter meter;
  meter.note(0, 10, 1);
  meter.note(0, 0, 5);
  meter.note(0, 5, 0);
  meter.note(0, 5, std::numeric_limits<double>::quiet_NaN());
  EXPECT_NEAR(meter.speeds(1)[0], 10, 1e-12);
}

TEST(SpeedMeter, RefusesAHalfLifeOfNothing) {
  EXPECT_THROW(SpeedMeter(0), ConfigError);
  EXPECT_THROW(SpeedMeter(std::numeric_limits<double>::quiet_NaN()), ConfigError);
}

}  // namespace
}  // namespace yoke::elastic
