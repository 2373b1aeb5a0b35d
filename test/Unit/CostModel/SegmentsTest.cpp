//===- SegmentsTest.cpp - When sequences are cut --------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/CostModel/Segments.h"

#include "gtest/gtest.h"

using namespace gdn::cost;
using Kind = gdn::cost::SplitRequest::Kind;

namespace {

Workload packed(int64_t sequences, int64_t tokens, int64_t heads,
                std::optional<int64_t> longest = std::nullopt) {
  Workload p;
  p.sequences = sequences;
  p.packed = true;
  p.tokens = tokens;
  p.longest = longest;
  p.keyHeads = p.heads = heads;
  return p;
}

SplitChoice split(const Workload &p, SplitRequest request = {}) {
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
  Workload p = packed(1, 32768, 8);
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

// Where all heads decay slowly, four segments of 32 heads take 1.04 of the time
// of whole sequences.
TEST(SplitTest, GatesThatTheHostDoesNotKnowCostLittle) {
  for (int64_t heads = 4; heads <= 132; heads += 4)
    for (int64_t tokens = 1024; tokens <= 131072; tokens *= 2) {
      SplitChoice choice = split(packed(1, tokens, heads));
      if (!choice.splits)
        continue;
      EXPECT_LE(choice.best->slowSeconds(), 1.03 * choice.wholeSeconds);
      EXPECT_LT(choice.seconds(), 0.97 * choice.wholeSeconds);
      EXPECT_LE(choice.seconds() + choice.best->noDecaySeconds,
                1.1 * choice.wholeSeconds);
    }
  EXPECT_FALSE(split(packed(1, 32768, 32)).splits);
  EXPECT_FALSE(split(packed(9, 33792, 8)).splits);
  SplitChoice skewed = split(packed(9, 33792, 8, 32768));
  ASSERT_TRUE(skewed.splits);
  EXPECT_EQ(skewed.best->segments, skewed.best->ofLongest + 8);
  EXPECT_FALSE(split(packed(4, 32768, 64)).splits);
}

// Without gates no segment forgets: a cut has to pay as they are.
TEST(SplitTest, WithoutGatesNoSegmentForgets) {
  SplitRequest decaying, undecayed;
  undecayed.decays = false;
  int wholeOnly = 0;
  for (int64_t heads = 4; heads <= 132; heads += 4)
    for (int64_t tokens = 1024; tokens <= 131072; tokens *= 2) {
      SplitChoice choice = split(packed(1, tokens, heads), undecayed);
      if (choice.splits)
        EXPECT_LT(choice.seconds(), 0.97 * choice.wholeSeconds);
      wholeOnly += !choice.splits && split(packed(1, tokens, heads)).splits;
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
  Workload p = packed(33, 65536, 8, 49152);
  for (int64_t length : {8192, 16384, 24576}) {
    SplitEstimate now = estimateSplit(p, chip, choose(p, chip), {length}, {});
    EXPECT_LE(now.slowGateSeconds, now.noDecaySeconds) << length << " tokens";
  }
}

TEST(SplitTest, GatesOfChannelsAreCutWhereMultiprocessorsAreIdle) {
  SplitRequest request;
  request.ownStarts = request.hasTwoLengths = true;
  auto splitChannels = [&](int64_t heads) {
    Workload p = packed(1, 8192, heads);
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

TEST(SplitTest, NothingIsNotCut) {
  EXPECT_FALSE(split(packed(0, 0, 8), {Kind::Segments, 4}).splits);
  EXPECT_FALSE(split(packed(1, 0, 8), {Kind::Length, 64}).splits);
  EXPECT_FALSE(split(packed(1, 128, 0), {Kind::Segments, 4}).splits);
}

} // namespace
