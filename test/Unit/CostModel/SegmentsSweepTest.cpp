//===- SegmentsSweepTest.cpp - Choices against a sweep of times -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/CostModel/Segments.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

using namespace gdn::cost;

namespace {

/// What docs/data/segments-sweep-h200.csv has of a sequence with one kind of
/// gates: the best time without segments, and times by number of segments.
struct Sweep {
  int64_t heads, tokens;
  std::string gates;
  double whole;
  std::map<int64_t, double> split;

  double best() const {
    double least = whole;
    for (const auto &[segments, seconds] : split)
      least = std::min(least, seconds);
    return least;
  }
};

/// The kernels that the sweep measured, which are those of the package.
SplitRequest requestOfSweep() {
  SplitRequest request;
  request.forgets = true;
  request.sideBySide = true;
  return request;
}

Problem problemOf(const Sweep &sweep) {
  Problem p;
  p.sequences = 1;
  p.packed = true;
  p.tokens = sweep.tokens;
  p.keyHeads = p.heads = sweep.heads;
  return p;
}

std::vector<Sweep> readSweep() {
  std::ifstream file(GDN_SEGMENT_SWEEP);
  std::map<std::pair<int64_t, int64_t>, double> whole;
  std::map<std::tuple<int64_t, int64_t, std::string>, Sweep> found;
  for (std::string line; std::getline(file, line);) {
    if (line[0] == '#' || line.find("key_heads,") == 0)
      continue;
    std::stringstream fields(line);
    std::string field[7];
    for (std::string &text : field)
      std::getline(fields, text, ',');
    int64_t heads = std::stoll(field[1]), tokens = std::stoll(field[2]);
    int64_t segments = std::stoll(field[5]);
    double seconds = std::stod(field[6]) * 1e-6;
    if (segments == 0) {
      double &least = whole.try_emplace({heads, tokens}, seconds).first->second;
      least = std::min(least, seconds);
      continue;
    }
    Sweep &sweep = found[{heads, tokens, field[3]}];
    sweep.heads = heads, sweep.tokens = tokens, sweep.gates = field[3];
    sweep.split[segments] = seconds;
  }
  std::vector<Sweep> sweeps;
  for (auto &[key, sweep] : found) {
    sweep.whole = whole.at({sweep.heads, sweep.tokens});
    sweeps.push_back(sweep);
  }
  return sweeps;
}

/// With as many segments of one length, and a CTA a head everywhere.
SplitEstimate estimateCount(const Sweep &sweep, int64_t segments) {
  Chip chip = *findChip("sm_90a");
  Problem p = problemOf(sweep);
  int64_t chunks = (sweep.tokens + 31) / 32;
  int64_t length = (chunks + segments - 1) / segments * 32;
  return estimateSplit(p, chip, choose(p, chip), length, Schedule::CtaPerHead,
                       requestOfSweep());
}

double predictedSeconds(const Sweep &sweep, const SplitEstimate &estimate) {
  if (sweep.gates == "0")
    return estimate.seconds() + estimate.noDecaySeconds;
  return sweep.gates == "qla" ? estimate.seconds() : estimate.slowSeconds();
}

/// The time of `choice`. It is that of the nearest number of segments,
/// over or times what the model says of both: those of the sweep are not all,
/// and every kernel has a CTA a head there.
std::optional<double> measuredSeconds(const Sweep &sweep,
                                      const SplitChoice &choice) {
  if (!choice.splits)
    return sweep.whole;
  double n = static_cast<double>(choice.best->ofLongest);
  auto nearest = std::min_element(
      sweep.split.begin(), sweep.split.end(), [&](auto &a, auto &b) {
        return std::abs(std::log(static_cast<double>(a.first) / n)) <
               std::abs(std::log(static_cast<double>(b.first) / n));
      });
  auto there = static_cast<double>(nearest->first);
  if (std::max(n / there, there / n) > 2)
    return std::nullopt;
  return nearest->second * predictedSeconds(sweep, *choice.best) /
         predictedSeconds(sweep, estimateCount(sweep, nearest->first));
}

SplitChoice choiceOf(const Sweep &sweep) {
  Chip chip = *findChip("sm_90a");
  Problem p = problemOf(sweep);
  return chooseSplit(p, chip, choose(p, chip), requestOfSweep());
}

std::string nameOf(const Sweep &sweep) {
  return std::to_string(sweep.heads) + " heads, " +
         std::to_string(sweep.tokens) + " tokens, gates " + sweep.gates;
}

/// The host does not know the gates, so one number of segments serves all
/// kinds, and none is taken where one kind would lose more than 3 %. So these
/// take more than 5 % over the best number for their own kind. The first one
/// was not measured: a forward with a CTA a V tile, reckoned.
const std::set<std::string> kNotTheBest = {
    "8 heads, 16384 tokens, gates qla",
    "16 heads, 131072 tokens, gates qla",
    "32 heads, 8192 tokens, gates qla",
    "32 heads, 16384 tokens, gates qla",
    "32 heads, 32768 tokens, gates qla",
    "32 heads, 65536 tokens, gates qla",
    "32 heads, 131072 tokens, gates -0.001",
};

/// With log gates of 0 in all heads nothing is forgotten in long segments
/// either. The model lets 10 % be lost then; this call loses 4 %.
const char *const kLoses = "32 heads, 131072 tokens, gates 0";

TEST(SplitSweepTest, ChoicesAreNearTheBest) {
  int compared = 0;
  for (const Sweep &sweep : readSweep()) {
    SplitChoice choice = choiceOf(sweep);
    std::optional<double> seconds = measuredSeconds(sweep, choice);
    ASSERT_TRUE(seconds) << nameOf(sweep) << ": " << choice.best->ofLongest
                         << " segments were not measured";
    double ratio = *seconds / sweep.best();
    bool isException = kNotTheBest.count(nameOf(sweep));
    EXPECT_EQ(ratio > 1.05, isException)
        << nameOf(sweep) << ": " << (choice.splits ? choice.best->ofLongest : 0)
        << " segments take " << ratio << " of the best";
    ++compared;
  }
  EXPECT_GE(compared, 70);
}

TEST(SplitSweepTest, NoChoiceLosesToWholeSequences) {
  for (const Sweep &sweep : readSweep()) {
    double most = nameOf(sweep) == kLoses ? 1.045 : 1.03;
    EXPECT_LE(*measuredSeconds(sweep, choiceOf(sweep)), most * sweep.whole)
        << nameOf(sweep);
  }
}

// Where segments lose by far, nobody asks how much.
TEST(SplitSweepTest, TimesArePredicted) {
  for (const Sweep &sweep : readSweep())
    for (const auto &[segments, seconds] : sweep.split) {
      if (seconds > 1.3 * sweep.whole)
        continue;
      double predicted =
          predictedSeconds(sweep, estimateCount(sweep, segments));
      EXPECT_NEAR(predicted / seconds, 1, 0.15)
          << nameOf(sweep) << ", " << segments << " segments: " << predicted;
    }
}

} // namespace
