//===- CalibrationTest.cpp - The cost model against measured times --------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/CostModel/CostModel.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

using namespace gdn::cost;

namespace {

/// A row of docs/data/forward-h200.csv.
struct Row {
  std::string lengths;
  Problem problem;
  Schedule schedule = Schedule::CtaPerHead;
  double seconds = 0;
  bool isShipped = false;
};

/// "8192x4" or "28672+4096": the sequences of a problem.
void readLengths(const std::string &text, Problem &problem) {
  std::stringstream vTiles(text);
  int64_t sequences = 0, tokens = 0, longest = 0;
  for (std::string part; std::getline(vTiles, part, '+');) {
    size_t times = part.find('x');
    int64_t length = std::stoll(part),
            count = times == part.npos ? 1 : std::stoll(part.substr(times + 1));
    sequences += count;
    tokens += count * length;
    longest = std::max(longest, length);
  }
  problem.packed = true;
  problem.sequences = sequences;
  problem.tokens = tokens;
  problem.longest = longest;
}

/// The measured calls: f32 states before and after, f32 gates.
std::vector<Row> readTimes() {
  std::ifstream file(GDN_FORWARD_TIMES);
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#' || line.find("lengths,") == 0)
      continue;
    std::stringstream fields(line);
    std::string lengths, keyHeads, heads, schedule, time, peer;
    std::getline(fields, lengths, ',');
    std::getline(fields, keyHeads, ',');
    std::getline(fields, heads, ',');
    std::getline(fields, schedule, ',');
    std::getline(fields, time, ',');
    std::getline(fields, peer, ',');
    Row row;
    row.lengths = lengths + " of " + heads + " heads, " + schedule;
    readLengths(lengths, row.problem);
    row.problem.keyHeads = std::stoll(keyHeads);
    row.problem.heads = std::stoll(heads);
    row.problem.stateBytes = 8;
    row.schedule = schedule == "cta_per_v_tile" ? Schedule::CtaPerVTile
                                                : Schedule::CtaPerHead;
    row.seconds = std::stod(time) * 1e-3;
    row.isShipped = !peer.empty();
    rows.push_back(row);
  }
  return rows;
}

TEST(CalibrationTest, ThereAreTimes) {
  std::vector<Row> rows = readTimes();
  EXPECT_GE(std::count_if(rows.begin(), rows.end(),
                          [](const Row &row) { return row.isShipped; }),
            13);
}

// Between calls on one card a time moves by that much.
TEST(CalibrationTest, TimesArePredictedWithinATenth) {
  for (const Row &row : readTimes()) {
    double predicted =
        estimate(row.problem, getHopper(), costsOf(row.schedule)).seconds;
    EXPECT_NEAR(predicted / row.seconds, 1, 0.1) << row.lengths;
  }
}

TEST(CalibrationTest, SchedulesRankAsMeasured) {
  int compared = 0;
  std::vector<Row> rows = readTimes();
  for (const Row &a : rows)
    for (const Row &b : rows) {
      bool isPair = a.problem.tokens == b.problem.tokens &&
                    a.problem.longest == b.problem.longest &&
                    a.problem.heads == b.problem.heads &&
                    a.problem.keyHeads == b.problem.keyHeads &&
                    a.schedule == Schedule::CtaPerHead &&
                    b.schedule == Schedule::CtaPerVTile;
      if (!isPair)
        continue;
      ++compared;
      Choice choice = choose(a.problem, getHopper());
      EXPECT_EQ(choice.of(Schedule::CtaPerHead).seconds <
                    choice.of(Schedule::CtaPerVTile).seconds,
                a.seconds < b.seconds)
          << a.lengths;
    }
  EXPECT_GE(compared, 1);
}

// With the longest sequence known, and without.
TEST(CalibrationTest, TheScheduleThatWasMeasuredIsChosen) {
  for (Row &row : readTimes()) {
    if (!row.isShipped)
      continue;
    EXPECT_EQ(choose(row.problem, getHopper()).schedule, row.schedule)
        << row.lengths;
    row.problem.longest.reset();
    EXPECT_EQ(choose(row.problem, getHopper()).schedule, row.schedule)
        << row.lengths << ", unknown";
  }
}

} // namespace
