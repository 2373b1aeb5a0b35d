//===- ChannelSegmentsTest.cpp - Cuts of forwards with gates of channels --===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sweep.h"

using namespace gdn::cost;
using Kind = gdn::cost::SplitRequest::Kind;

namespace {

/// A call of gdn.chunk_kda of one sequence: raw gates in bf16, both states.
struct Call {
  Workload workload;
  Chip chip = getDefaultChip(132);
  SplitRequest request;

  Call(int64_t heads, int64_t tokens) {
    workload.sequences = 1;
    workload.tokens = tokens;
    workload.keyHeads = workload.heads = heads;
    workload.gatesChannels = true;
    workload.gateBytes = 2 + 128 * 2;
    workload.stateBytes = 8;
    request.ownStarts = request.hasTwoLengths = true;
  }

  SplitChoice split() const {
    return chooseSplit(workload, chip, choose(workload, chip), request);
  }
};

TEST(ChannelSegmentsTest, TimesArePredicted) {
  std::ifstream file(GDN_CHANNEL_SEGMENT_TIMES);
  int compared = 0;
  for (std::string line; std::getline(file, line);) {
    if (line[0] == '#' || line.find("heads,") == 0)
      continue;
    std::stringstream stream(line);
    std::vector<std::string> fields;
    for (std::string field; std::getline(stream, field, ',');)
      fields.push_back(field);
    ASSERT_EQ(fields.size(), 5u);
    Call call(std::stoll(fields[0]), std::stoll(fields[1]));
    call.request.value = std::stoll(fields[3]);
    call.request.kind = Kind::Segments;
    SplitChoice choice = call.split();
    double predicted = !choice.splits            ? choice.wholeSeconds
                       : fields[2] == "flashkda" ? choice.best->seconds()
                                                 : choice.best->slowSeconds();
    EXPECT_NEAR(predicted / (std::stod(fields[4]) * 1e-6), 1, 0.16)
        << line << ": " << predicted;
    ++compared;
  }
  EXPECT_EQ(compared, 248);
}

// 96 heads of 8192 tokens take 0.500 ms if they forget, and 0.625 for 0.571 if
// they keep their states; 32 heads 0.184 for 0.285, and 0.318.
TEST(ChannelSegmentsTest, TheDeviceLeavesSequencesWholeWhereHeadsKeep) {
  for (auto [heads, gain, loss] :
       {std::tuple(96, 0.88, 1.12), std::tuple(32, 0.67, 1.15)}) {
    SplitChoice choice = Call(heads, 8192).split();
    ASSERT_TRUE(choice.splits) << heads << " heads";
    EXPECT_EQ(choice.best->length, 4096);
    EXPECT_EQ(choice.best->longerLength, 8192);
    EXPECT_EQ(choice.best->parts, 1);
    EXPECT_LT(choice.seconds(), gain * choice.wholeSeconds);
    // Its kernels of segments have CTAs that end at once.
    EXPECT_GT(choice.best->slowSeconds(), choice.wholeSeconds);
    EXPECT_LT(choice.best->slowSeconds(), loss * choice.wholeSeconds);
  }
}

// Segments of four chunks forget what is before them with gates of models. One
// head of 5450 tokens takes 0.028 ms in 28 segments or 43, for 0.031 in 21; 8
// heads of 1024 tokens 0.028 in 8, for 0.040 whole, and 0.052 if they keep.
TEST(ChannelSegmentsTest, FewHeadsHaveShortSegments) {
  for (auto [heads, tokens, length] :
       {std::tuple(1, 5450, 160), std::tuple(8, 1024, 128),
        std::tuple(4, 2048, 128)}) {
    SplitChoice choice = Call(heads, tokens).split();
    ASSERT_TRUE(choice.splits) << heads << " heads";
    EXPECT_EQ(choice.best->length, length) << heads << " heads";
  }
  EXPECT_FALSE(Call(5, 541).split().splits);
}

// Two CTAs a head take all multiprocessors once.
TEST(ChannelSegmentsTest, FullMultiprocessorsAreLeft) {
  EXPECT_FALSE(Call(64, 8192).split().splits);
}

// 12 heads take 0.088 ms in 11 segments if they forget, and 0.222 for 0.279 if
// they keep. A quarter of the tokens takes 0.039 ms in 5, for 0.074, and 0.087.
TEST(ChannelSegmentsTest, OneLengthWhereItPaysMost) {
  for (auto [tokens, segments] : {std::pair(8192, 11), std::pair(2048, 5)}) {
    SplitChoice choice = Call(12, tokens).split();
    ASSERT_TRUE(choice.splits) << tokens << " tokens";
    EXPECT_EQ(choice.best->ofLongest, segments);
    EXPECT_EQ(choice.best->longerLength, 0);
    EXPECT_LT(choice.best->slowSeconds(), 1.1 * choice.wholeSeconds);
  }
}

// Of functions that look at gates, twice as many kernels are launched, of which
// half leave: 15 us more in segments than whole.
TEST(ChannelSegmentsTest, ShortCallsThatLookAreLeftWhole) {
  for (auto [tokens, splits] :
       {std::pair(1024, false), std::pair(4096, true)}) {
    Call call(4, tokens);
    SplitChoice choice = call.split();
    EXPECT_TRUE(choice.splits) << tokens << " tokens";
    call.request.looksAtGates = true;
    SplitChoice looking = call.split();
    EXPECT_EQ(looking.splits, splits) << tokens << " tokens";
    EXPECT_EQ(looking.wholeSeconds, choice.wholeSeconds);
    EXPECT_NEAR(looking.best->seconds(), choice.best->seconds() + 15e-6, 1e-6);
  }
}

// The host may not know how long the longest one is.
TEST(ChannelSegmentsTest, PackedSequencesAreLeftWholeHoweverLong) {
  Call call(24, 16384);
  call.workload.packed = true;
  call.workload.sequences = 2;
  EXPECT_LT(choose(call.workload, call.chip).longest, 16384);
  SplitChoice choice = call.split();
  ASSERT_TRUE(choice.splits);
  EXPECT_EQ(choice.best->longerLength, 16384);
}

// Without a sample many heads that keep their states lose too much.
TEST(ChannelSegmentsTest, WithoutASampleFewHeadsAreCut) {
  for (auto [heads, splits] :
       {std::pair(96, false), std::pair(32, false), std::pair(12, true)}) {
    Call call(heads, 8192);
    call.request.hasTwoLengths = false;
    EXPECT_EQ(call.split().splits, splits) << heads << " heads";
  }
}

} // namespace
