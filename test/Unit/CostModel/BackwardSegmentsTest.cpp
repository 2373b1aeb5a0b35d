//===- BackwardSegmentsTest.cpp - When a backward is cut ------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/CostModel/BackwardSegments.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

using namespace gdn::cost;
using Kind = gdn::cost::SplitRequest::Kind;

namespace {

Problem packed(int64_t sequences, int64_t tokens, int64_t keyHeads,
               int64_t heads) {
  Problem p;
  p.sequences = sequences;
  p.packed = true;
  p.tokens = tokens;
  p.keyHeads = keyHeads;
  p.heads = heads;
  return p;
}

BackwardChoice choose(const Problem &p, int64_t longest,
                      SplitRequest request = {}) {
  return chooseBackwardSplit(p, *findChip("sm_90a"), longest, 64, request);
}

/// Of docs/data/backward-segments-h200.csv: one sequence, whole or in segments
/// side by side.
TEST(BackwardSplitTest, MeetsMeasuredTimes) {
  std::ifstream file(GDN_BACKWARD_SEGMENT_TIMES);
  ASSERT_TRUE(file.is_open());
  std::string line;
  std::getline(file, line);
  int compared = 0;
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream words(line);
    int64_t keyHeads, heads, tokens, segments;
    std::string gates;
    bool isSideBySide;
    double us;
    ASSERT_TRUE(words >> keyHeads >> heads >> tokens >> gates >> segments >>
                isSideBySide >> us)
        << line;
    if (gates == "heads" || (segments && !isSideBySide))
      continue;
    Problem p = packed(1, tokens, keyHeads, heads);
    Chip chip = *findChip("sm_90a");
    double predicted = estimateWholeBackward(p, chip, tokens);
    double bound = 0.06;
    if (segments) {
      auto cut = estimateBackwardSplit(p, chip, tokens, tokens / segments);
      predicted = gates == "qla" ? cut.seconds : cut.worstSeconds;
      bound = 0.09;
    }
    EXPECT_LE(std::abs(predicted * 1e6 / us - 1), bound)
        << line << ": predicted " << predicted * 1e6;
    ++compared;
  }
  EXPECT_GE(compared, 25);
}

TEST(BackwardSplitTest, FewHeadsOfALongSequenceAreCut) {
  for (auto [keyHeads, heads] : {std::pair(2, 4), {4, 8}, {8, 16}, {8, 8}}) {
    BackwardChoice choice = choose(packed(1, 32768, keyHeads, heads), 32768);
    EXPECT_GT(choice.length, 0) << heads << " heads";
    EXPECT_EQ(choice.length % 64, 0);
    EXPECT_LE(choice.best->worstSeconds, 1.03 * choice.wholeSeconds);
  }
}

TEST(BackwardSplitTest, ChoosesWhatIsFastNext) {
  // Measured: 8 segments 0.626 ms, 16 0.645; 16 0.374, 32 0.427.
  int64_t segments = 32768 / choose(packed(1, 32768, 4, 8), 32768).length;
  EXPECT_GE(segments, 7);
  EXPECT_LE(segments, 16);
  segments = 32768 / choose(packed(1, 32768, 2, 4), 32768).length;
  EXPECT_GE(segments, 12);
  EXPECT_LE(segments, 24);
}

TEST(BackwardSplitTest, AFullChipIsNot) {
  EXPECT_EQ(choose(packed(8, 32768, 16, 32), 9932).length, 0);
  EXPECT_EQ(choose(packed(1, 32768, 64, 64), 32768).length, 0);
  EXPECT_EQ(choose(packed(1, 256, 2, 4), 256).length, 0);
  EXPECT_EQ(choose(packed(0, 0, 2, 4), 0).length, 0);
  // Eight segments would lose 8 % where no head decays.
  EXPECT_EQ(choose(packed(1, 8192, 16, 32), 8192).length, 0);
}

TEST(BackwardSplitTest, TheCallerDecides) {
  Problem p = packed(1, 1000, 2, 4);
  EXPECT_EQ(choose(p, 1000, {Kind::Never}).length, 0);
  EXPECT_EQ(choose(p, 1000, {Kind::Segments, 1}).length, 0);
  EXPECT_EQ(choose(p, 1000, {Kind::Segments, 3}).length, 384);
  EXPECT_EQ(choose(p, 1000, {Kind::Length, 96}).length, 128);
  // A sequence of one chunk.
  EXPECT_EQ(choose(p, 64, {Kind::Segments, 3}).length, 0);
}

} // namespace
