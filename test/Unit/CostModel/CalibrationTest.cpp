//===- CalibrationTest.cpp - The cost model against measured times --------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CostFit.h"

#include "gtest/gtest.h"

#include <algorithm>

using namespace gdn::cost;

namespace {

std::vector<MeasuredCall> readTimes() {
  return gdn::cost::readTimes(GDN_FORWARD_TIMES);
}

TEST(CalibrationTest, ThereAreTimes) {
  std::vector<MeasuredCall> rows = readTimes();
  EXPECT_GE(
      std::count_if(rows.begin(), rows.end(),
                    [](const MeasuredCall &row) { return row.isShipped; }),
      13);
}

// gdn-fit-costs --floors says them: tables and plots have no formula of their
// own.
TEST(CalibrationTest, FloorsAreThoseOfTheModel) {
  for (const char *path : {GDN_FORWARD_TIMES, GDN_MORE_TIMES,
                           GDN_STATE_PASS_TIMES, GDN_LINEAR_ATTENTION_TIMES})
    for (const MeasuredCall &row : gdn::cost::readTimes(path))
      EXPECT_NEAR(row.floorSeconds / countFloor(row), 1, 1e-5) << row.lengths;
}

/// The files of times, one a stage.
constexpr const char *stageTimes[] = {GDN_FORWARD_TIMES, GDN_STATE_PASS_TIMES,
                                      GDN_LINEAR_ATTENTION_TIMES};

// gdn-fit-costs writes them.
void expectFit(const char *path) {
  std::vector<MeasuredCall> calls = gdn::cost::readTimes(path);
  ASSERT_FALSE(calls.empty()) << path;
  CostDigits digits = fitCosts(calls);
  for (const ScheduleCosts &costs : schedulesOf(calls.front().workload.stage)) {
    EXPECT_FALSE(costs.predicted) << path;
    ScheduleCosts fitted = withDigits(costs, digits);
    EXPECT_NEAR(costs.item.first, fitted.item.first, 1e-12) << costs.name;
    EXPECT_NEAR(costs.item.further, fitted.item.further, 1e-12) << costs.name;
    EXPECT_NEAR(costs.chunk.first, fitted.chunk.first, 1e-12) << costs.name;
    EXPECT_NEAR(costs.chunk.further, fitted.chunk.further, 1e-12) << costs.name;
    EXPECT_NEAR(costs.launchSeconds, fitted.launchSeconds, 1e-12) << costs.name;
  }
  EXPECT_LT(errorOf(calls, digits), 0.06);
}

TEST(CalibrationTest, RowsAreTheFit) {
  for (const char *path : stageTimes)
    expectFit(path);
}

// Between calls on one card a time moves by that much.
TEST(CalibrationTest, TimesArePredictedWithinATenth) {
  for (const char *path : stageTimes)
    for (const MeasuredCall &row : gdn::cost::readTimes(path)) {
      double predicted = estimate(row.workload, getDefaultChip(),
                                  costsOf(row.schedule, row.workload.stage))
                             .seconds;
      EXPECT_NEAR(predicted / row.seconds, 1, 0.1) << row.lengths;
    }
}

TEST(CalibrationTest, SchedulesRankAsMeasured) {
  int compared = 0;
  std::vector<MeasuredCall> rows = readTimes();
  for (const MeasuredCall &a : rows)
    for (const MeasuredCall &b : rows) {
      bool isPair = a.workload.tokens == b.workload.tokens &&
                    a.workload.longest == b.workload.longest &&
                    a.workload.heads == b.workload.heads &&
                    a.workload.keyHeads == b.workload.keyHeads &&
                    a.schedule == Schedule::CtaPerHead &&
                    b.schedule == Schedule::CtaPerVTile;
      if (!isPair)
        continue;
      ++compared;
      Choice choice = choose(a.workload, getDefaultChip());
      EXPECT_EQ(choice.of(Schedule::CtaPerHead).seconds <
                    choice.of(Schedule::CtaPerVTile).seconds,
                a.seconds < b.seconds)
          << a.lengths;
    }
  EXPECT_GE(compared, 1);
}

// With the longest sequence known, and without.
TEST(CalibrationTest, TheScheduleThatWasMeasuredIsChosen) {
  for (MeasuredCall &row : readTimes()) {
    if (!row.isShipped)
      continue;
    EXPECT_EQ(choose(row.workload, getDefaultChip()).schedule, row.schedule)
        << row.lengths;
    row.workload.longest.reset();
    EXPECT_EQ(choose(row.workload, getDefaultChip()).schedule, row.schedule)
        << row.lengths << ", unknown";
  }
}

} // namespace
