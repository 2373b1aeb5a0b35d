//===- SegmentsTest.cpp - When sequences are cut --------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/CostModel/Segments.h"

#include "gtest/gtest.h"

#include <fstream>
#include <sstream>

using namespace gdn::cost;
using Kind = gdn::cost::SplitRequest::Kind;

namespace {

Problem packed(int64_t sequences, int64_t tokens, int64_t heads,
               std::optional<int64_t> longest = std::nullopt) {
  Problem p;
  p.sequences = sequences;
  p.packed = true;
  p.tokens = tokens;
  p.longest = longest;
  p.keyHeads = p.heads = heads;
  return p;
}

SplitChoice split(const Problem &p, SplitRequest request = {}) {
  Chip chip = getDefaultChip();
  return chooseSplit(p, chip, choose(p, chip), request);
}

TEST(SplitTest, MemoryIsForTheMostSegments) {
  EXPECT_EQ(countSegments(1, 300, 64, true), 5);
  EXPECT_EQ(countSegments(3, 300, 64, true), 7);
  EXPECT_EQ(countSegments(3, 300, 64, false), 15);
  EXPECT_EQ(countSegments(0, 0, 64, true), 0);
  // Three sequences that need as many: 1, 1 and 298 tokens.
  EXPECT_EQ(1 + 1 + (298 + 63) / 64, 7);
}

TEST(SplitTest, FewHeadsOfALongSequenceAreCut) {
  for (int64_t heads : {4, 8, 16}) {
    SplitChoice choice = split(packed(1, 32768, heads));
    EXPECT_TRUE(choice.splits) << heads << " heads";
    EXPECT_LE(choice.best->segments * heads, 3 * 132);
    EXPECT_GE(choice.best->ofLongest * choice.best->length, 32768);
  }
}

TEST(SplitTest, AFullChipIsNot) {
  EXPECT_FALSE(split(packed(4, 32768, 64)).splits);
  EXPECT_FALSE(split(packed(1, 32768, 132)).splits);
  EXPECT_FALSE(split(packed(1, 256, 8)).splits);
}

TEST(SplitTest, OfASkewedBatchTheLongOneIs) {
  SplitChoice choice = split(packed(9, 33792, 8, 32768));
  ASSERT_TRUE(choice.splits);
  EXPECT_EQ(choice.best->segments, choice.best->ofLongest + 8);
  EXPECT_LT(choice.seconds(), 0.97 * choice.wholeSeconds);
}

TEST(SplitTest, TheCallerDecides) {
  Problem p = packed(1, 32768, 8);
  EXPECT_FALSE(split(p, {Kind::Never, 0}).splits);
  EXPECT_FALSE(split(p, {Kind::Segments, 1}).splits);
  SplitChoice four = split(packed(1, 32700, 64), {Kind::Segments, 4});
  EXPECT_TRUE(four.splits && four.isForced);
  EXPECT_EQ(four.best->length, 8192);
  // More than there are chunks: a chunk each.
  EXPECT_EQ(split(p, {Kind::Segments, 5000}).best->length, 32);
  for (int64_t tokens : {64, 32768}) {
    SplitChoice length = split(packed(1, tokens, 2), {Kind::Length, 96});
    EXPECT_TRUE(length.splits);
    EXPECT_EQ(length.best->length, 96);
    EXPECT_EQ(length.best->schedule, Schedule::CtaPerHead);
  }
}

/// A line of docs/data/segments-h200.csv.
struct MeasuredSplit {
  int64_t tokens, heads, live, segments;
  Schedule schedule;
  double seconds;
};

std::vector<MeasuredSplit> readSplits() {
  std::ifstream file(GDN_SEGMENT_TIMES);
  std::vector<MeasuredSplit> rows;
  for (std::string line; std::getline(file, line);) {
    if (line[0] == '#' || line.find("lengths,") == 0)
      continue;
    std::stringstream fields(line);
    std::string field[7];
    for (std::string &text : field)
      std::getline(fields, text, ',');
    rows.push_back({std::stoll(field[0]), std::stoll(field[2]),
                    std::stoll(field[3]), std::stoll(field[5]),
                    *findSchedule(field[4]), std::stod(field[6]) * 1e-6});
  }
  return rows;
}

SplitEstimate estimateOf(const MeasuredSplit &row) {
  Chip chip = getDefaultChip();
  Problem p = packed(1, row.tokens, row.heads);
  int64_t chunks = (row.tokens + 31) / 32;
  int64_t length = (chunks + row.segments - 1) / row.segments * 32;
  SplitRequest request;
  request.forgets = true;
  return estimateSplit(p, chip, choose(p, chip), length, row.schedule, request);
}

// Kernels of 2026-11-23, morning: the scan and the starts are faster now, and
// the model is fitted to SegmentsSweepTest.cpp's times.
TEST(SplitTest, TimesArePredicted) {
  int compared = 0;
  for (const MeasuredSplit &row : readSplits()) {
    // The package has no maps with a CTA a V tile.
    if (row.schedule == Schedule::CtaPerVTile)
      continue;
    SplitEstimate now = estimateOf(row);
    double predicted =
        row.live == row.heads ? now.slowSeconds() : now.seconds();
    EXPECT_NEAR(predicted / row.seconds, 1, 0.18)
        << row.tokens << " tokens, " << row.heads << " heads, " << row.live
        << " of them live, " << row.segments << " segments: " << predicted
        << " predicted";
    ++compared;
  }
  EXPECT_GE(compared, 20);
}

// Where all heads decay slowly, four segments of 32 heads take 1.04 of the time
// of whole sequences.
TEST(SplitTest, GatesThatTheHostDoesNotKnowCostLittle) {
  SplitRequest request;
  request.forgets = request.sideBySide = true;
  for (int64_t heads = 4; heads <= 132; heads += 4)
    for (int64_t tokens = 1024; tokens <= 131072; tokens *= 2) {
      SplitChoice choice = split(packed(1, tokens, heads), request);
      if (!choice.splits)
        continue;
      EXPECT_LE(choice.best->slowSeconds(), 1.03 * choice.wholeSeconds);
      EXPECT_LT(choice.seconds(), 0.97 * choice.wholeSeconds);
      EXPECT_LE(choice.seconds() + choice.best->noDecaySeconds,
                1.1 * choice.wholeSeconds);
    }
  EXPECT_FALSE(split(packed(1, 32768, 32), request).splits);
  EXPECT_FALSE(split(packed(9, 33792, 8), request).splits);
  SplitChoice skewed = split(packed(9, 33792, 8, 32768), request);
  ASSERT_TRUE(skewed.splits);
  EXPECT_EQ(skewed.best->segments, skewed.best->ofLongest + 8);
  EXPECT_FALSE(split(packed(4, 32768, 64), request).splits);
}

// Without gates no segment forgets: a cut has to pay as they are.
TEST(SplitTest, WithoutGatesNoSegmentForgets) {
  SplitRequest decaying;
  decaying.forgets = decaying.sideBySide = true;
  SplitRequest undecayed = decaying;
  undecayed.decays = false;
  int wholeOnly = 0;
  for (int64_t heads = 4; heads <= 132; heads += 4)
    for (int64_t tokens = 1024; tokens <= 131072; tokens *= 2) {
      SplitChoice choice = split(packed(1, tokens, heads), undecayed);
      if (choice.splits)
        EXPECT_LT(choice.seconds(), 0.97 * choice.wholeSeconds);
      wholeOnly +=
          !choice.splits && split(packed(1, tokens, heads), decaying).splits;
      if (choice.best) {
        EXPECT_EQ(choice.best->slowSeconds(), choice.best->seconds());
        EXPECT_EQ(choice.best->noDecaySeconds, 0);
      }
    }
  EXPECT_GT(wholeOnly, 0);
  EXPECT_TRUE(split(packed(1, 32768, 8), undecayed).splits);
  EXPECT_FALSE(decaying == undecayed);
}

// Sequences of a skewed batch are shorter in the mean than its longest segment:
// slow gates cost no more than none that decays.
TEST(SplitTest, SlowGatesCostAtMostWhatNoDecayCosts) {
  Chip chip = getDefaultChip();
  SplitRequest request;
  request.forgets = request.sideBySide = true;
  Problem p = packed(33, 65536, 8, 49152);
  for (int64_t length : {8192, 16384, 24576}) {
    SplitEstimate now = estimateSplit(p, chip, choose(p, chip), length,
                                      Schedule::CtaPerHead, request);
    EXPECT_LE(now.slowGateSeconds, now.noDecaySeconds) << length << " tokens";
  }
}

TEST(SplitTest, GatesOfChannelsAreCutWhereMultiprocessorsAreIdle) {
  SplitRequest request;
  request.forgets = request.sideBySide = request.ownStarts = true;
  request.samplesGates = true;
  auto splitChannels = [&](int64_t heads) {
    Problem p = packed(1, 8192, heads);
    p.gatesChannels = true;
    p.gateBytes = 4 + 128 * 2;
    return split(p, request);
  };
  for (int64_t heads : {12, 32}) {
    SplitChoice choice = splitChannels(heads);
    ASSERT_TRUE(choice.splits) << heads << " heads";
    EXPECT_LT(choice.seconds(), 0.75 * choice.wholeSeconds);
    // A head forgets within the tokens that are looked at, or has its maps.
    EXPECT_EQ(choice.best->slowGateSeconds, choice.best->noDecaySeconds);
    EXPECT_GT(choice.best->slowGateSeconds, 0);
  }
  // A CTA for each V tile: two for a head.
  EXPECT_FALSE(splitChannels(64).splits);
}

// With gates that decay, a quarter of the maps and of what segments add is left
// for 132 multiprocessors: one wave of both and not one of each.
TEST(SplitTest, SideBySideIsOneWave) {
  Chip chip = getDefaultChip();
  Problem p = packed(1, 32768, 32);
  Choice whole = choose(p, chip);
  SplitRequest request;
  request.forgets = true;
  auto four = [&] {
    return estimateSplit(p, chip, whole, 8192, Schedule::CtaPerHead, request);
  };
  SplitEstimate apart = four();
  request.sideBySide = true;
  SplitEstimate beside = four();
  EXPECT_NEAR(beside.slowSeconds(), apart.slowSeconds(), 5e-6);
  EXPECT_LT(beside.seconds(), 0.8 * apart.seconds());
}

TEST(SplitTest, NothingIsNotCut) {
  EXPECT_FALSE(split(packed(0, 0, 8), {Kind::Segments, 4}).splits);
  EXPECT_FALSE(split(packed(1, 0, 8), {Kind::Length, 64}).splits);
  EXPECT_FALSE(split(packed(1, 128, 0), {Kind::Segments, 4}).splits);
}

} // namespace
