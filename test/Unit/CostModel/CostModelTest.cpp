//===- CostModelTest.cpp - What the cost model says and chooses -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/CostModel/CostModel.h"

#include "gtest/gtest.h"

#include <limits>
#include <queue>
#include <tuple>

using namespace gdn::cost;

namespace {

Chip hopper() { return getDefaultChip(); }

/// Sequences of one length.
Workload batch(int64_t sequences, int64_t length, int64_t heads) {
  Workload p;
  p.sequences = sequences;
  p.tokens = length;
  p.heads = heads;
  p.keyHeads = heads;
  return p;
}

Workload packed(int64_t sequences, int64_t tokens, int64_t heads,
                std::optional<int64_t> longest = std::nullopt) {
  Workload p = batch(sequences, tokens / sequences, heads);
  p.tokens = tokens;
  p.packed = true;
  p.longest = longest;
  return p;
}

double secondsOf(const Workload &p, Schedule schedule) {
  return estimate(p, hopper(), costsOf(schedule)).seconds;
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

TEST(CostModelTest, FlopAreThoseOfChunksOf64) {
  EXPECT_EQ(flopPerToken(128, 128), 163840);
  EXPECT_EQ(countFlop(batch(4, 8192, 64)), 163840.0 * 4 * 8192 * 64);
}

TEST(CostModelTest, BytesAreThoseOfTheArrays) {
  Workload p = batch(2, 100, 4);
  p.keyHeads = 2;
  // q and k, v and o, gate and beta.
  double tokens = 200 * (2 * 2 * 128 * 2 + 2 * 4 * 128 * 2 + 4 * 8);
  EXPECT_EQ(countBytes(p), tokens);
  p.stateBytes = 8;
  EXPECT_EQ(countBytes(p), tokens + 2 * 4 * 128 * 128 * 8);
}

TEST(CostModelTest, TheFloorIsTheLargerOfFlopAndBytes) {
  Chip chip = hopper();
  Workload shared = batch(4, 8192, 64);
  shared.keyHeads = 16;
  Choice choice = choose(shared, chip);
  EXPECT_DOUBLE_EQ(choice.floorSeconds, choice.flop / chip.flopPerSecond);
  EXPECT_GT(choice.utilisation(), 0.5);
  EXPECT_LT(choice.utilisation(), 1);
  Workload oneToken = batch(4096, 1, 64);
  oneToken.stateBytes = 8;
  choice = choose(oneToken, chip);
  EXPECT_DOUBLE_EQ(choice.floorSeconds, choice.bytes / chip.bytesPerSecond);
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

TEST(CostModelTest, OneWaveIsItsLongestItem) {
  const ScheduleCosts &split = costsOf(Schedule::CtaPerVTile);
  double once = secondsOf(batch(1, 32, 1), Schedule::CtaPerVTile);
  EXPECT_NEAR(secondsOf(batch(1, 64, 1), Schedule::CtaPerVTile) - once,
              split.chunk.first, 1e-12);
  EXPECT_EQ(secondsOf(batch(66, 32, 1), Schedule::CtaPerVTile), once);
  EXPECT_GT(secondsOf(batch(67, 32, 1), Schedule::CtaPerVTile), once);
}

TEST(CostModelTest, TokenByTokenEndsWithTheBytesOrWithTheTokens) {
  Workload p = batch(256, 1, 32);
  p.stage = kTokenStage;
  p.stateBytes = 8;
  Choice many = choose(p, hopper());
  ASSERT_EQ(many.estimates.size(), 1u);
  EXPECT_EQ(many.schedule, Schedule::Token);
  EXPECT_EQ(many.chosen().bound, Bound::Memory);
  EXPECT_EQ(many.chosen().ctas, 256 * 32 * 4);
  p.sequences = 1;
  double one = choose(p, hopper()).chosen().seconds;
  p.tokens = 16;
  Choice tokens = choose(p, hopper());
  EXPECT_EQ(tokens.chosen().bound, Bound::Longest);
  EXPECT_NEAR(tokens.chosen().seconds - one, 15 * tokenSchedule().chunk.first,
              0.3e-6);
  // One token is no chunk's work, a long sequence is.
  Workload chunks = batch(1, 1, 32);
  EXPECT_LT(one, choose(chunks, hopper()).chosen().seconds);
  p.tokens = chunks.tokens = 4096;
  EXPECT_GT(choose(p, hopper()).chosen().seconds,
            choose(chunks, hopper()).chosen().seconds);
  EXPECT_EQ(findSchedule("token"), Schedule::Token);
}

/// One token of 16 q/k and 32 value heads on an H200, K = V = 128, states in
/// f32 (docs/experiments/recurrent.md).
TEST(CostModelTest, OneTokenIsPredictedAsMeasured) {
  struct Measured {
    int64_t sequences;
    double byValues, byKeys;
  };
  for (Measured now : {Measured{1, 3.49e-6, 4.86e-6},
                       {8, 10.57e-6, 12.13e-6},
                       {32, 35.20e-6, 37.59e-6},
                       {64, 67.48e-6, 70.03e-6},
                       {256, 261.84e-6, 265.33e-6}}) {
    Workload p = batch(now.sequences, 1, 32);
    p.stage = kTokenStage;
    p.keyHeads = 16;
    p.stateBytes = 8;
    for (double seconds : {now.byKeys, now.byValues}) {
      p.stateVFirst = seconds == now.byValues;
      Estimate found = choose(p, hopper()).chosen();
      EXPECT_NEAR(found.seconds, seconds, 0.08 * seconds) << now.sequences;
      EXPECT_FALSE(found.predicted);
      EXPECT_EQ(found.ctas, now.sequences * 32 * (p.stateVFirst ? 8 : 4));
    }
  }
}

/// Several tokens of the same heads, states [V, K].
TEST(CostModelTest, SeveralTokensArePredictedAsMeasured) {
  struct Measured {
    int64_t sequences, tokens;
    double seconds;
  };
  for (Measured now : {Measured{1, 8, 11.92e-6},
                       {1, 32, 39.07e-6},
                       {8, 4, 18.72e-6},
                       {8, 16, 56.81e-6},
                       {64, 2, 89.18e-6},
                       {64, 4, 118.99e-6},
                       {64, 8, 209.49e-6},
                       {64, 32, 769.38e-6}}) {
    Workload p = batch(now.sequences, now.tokens, 32);
    p.stage = kTokenStage;
    p.keyHeads = 16;
    p.stateBytes = 8;
    p.stateVFirst = true;
    double found = choose(p, hopper()).chosen().seconds;
    EXPECT_NEAR(found, now.seconds, 0.13 * now.seconds)
        << now.sequences << " x " << now.tokens;
  }
}

TEST(CostModelTest, GatesOfChannelsTakeTheTimeMeasured) {
  // docs/experiments/kda.md, "Which segments a forward should have, again".
  using Measured = std::tuple<int64_t, int64_t, int64_t, double>;
  for (auto [sequences, tokens, heads, seconds] :
       {Measured{1, 8192, 96, 572e-6}, Measured{8, 1024, 96, 526e-6},
        Measured{1, 8192, 64, 291e-6}, Measured{8, 1024, 64, 356e-6},
        Measured{1, 8192, 32, 285e-6}, Measured{8, 1024, 32, 181e-6},
        Measured{1, 8192, 12, 279e-6}}) {
    Workload p = batch(sequences, tokens, heads);
    p.gatesChannels = true;
    p.gateBytes = 4 + 128 * 2;
    Estimate found = estimate(p, hopper(), costsOf(Schedule::CtaPerVTile));
    EXPECT_NEAR(found.seconds, seconds, 0.08 * seconds) << heads << " heads";
  }
}

TEST(CostModelTest, StagesThatNobodyMeasuredArePredictedByFlop) {
  ScheduleCosts forward = costsOf(Schedule::CtaPerHead);
  EXPECT_FALSE(forward.predicted);
  for (const char *stage : {"state_pass", "linear_attention"}) {
    EXPECT_EQ(flopPerToken(128, 128, stage), 98304) << stage;
    EXPECT_FALSE(costsOf(Schedule::CtaPerHead, stage).predicted) << stage;
  }
  // A stage without a row has the forward's work, and so its time.
  ScheduleCosts costs = costsOf(Schedule::CtaPerHead, "run");
  EXPECT_TRUE(costs.predicted);
  EXPECT_DOUBLE_EQ(costs.chunk.first, forward.chunk.first);
  Workload other = batch(8, 4096, 64);
  other.stage = "run";
  EXPECT_TRUE(choose(other, getDefaultChip()).chosen().predicted);
  // The state pass reads neither queries nor writes an output.
  Workload p = batch(2, 100, 4);
  p.stage = "state_pass";
  EXPECT_EQ(countBytes(p), 200 * (2 * 4 * 128 * 2 + 4 * 8));
}

// By a queue of multiprocessors, the plain way, for all kinds of mixtures.
TEST(CostModelTest, ItemsStartWhereAMultiprocessorIsFree) {
  Chip chip = {7, 1e30, 1e30};
  for (int64_t sequences : {1, 2, 3, 5, 8, 40})
    for (int64_t heads : {1, 3, 5, 7, 8, 20})
      for (int64_t longest : {640, 1000, 2000, 6400}) {
        int64_t others = (6400 - longest) / std::max<int64_t>(sequences - 1, 1);
        if (others > longest)
          continue;
        Workload p = packed(sequences, longest + (sequences - 1) * others,
                            heads, longest);
        ScheduleCosts costs = costsOf(Schedule::CtaPerHead);
        double item = costs.item.first + costs.item.further,
               chunk = costs.chunk.first + costs.chunk.further, end = 0;
        std::priority_queue<double, std::vector<double>, std::greater<double>>
            free;
        for (int64_t i = 0; i < chip.multiprocessors; ++i)
          free.push(0);
        for (int64_t i = 0; i < sequences * heads; ++i) {
          int64_t tokens = i < heads ? longest : others;
          double done = free.top() + item + double((tokens + 31) / 32) * chunk;
          free.pop();
          free.push(done);
          end = std::max(end, done);
        }
        double launch = estimate(batch(1, 0, 1), chip, costs).seconds - item;
        EXPECT_NEAR(estimate(p, chip, costs).seconds, launch + end, 1e-9)
            << sequences << " sequences, " << heads << " heads, longest "
            << longest;
      }
}

TEST(CostModelTest, BytesMayTakeLonger) {
  Workload p = batch(132, 1, 1);
  p.stateBytes = 8;
  Chip slow = {132, 790e12, 1e9};
  Estimate found = estimate(p, slow, costsOf(Schedule::CtaPerHead));
  EXPECT_EQ(found.bound, Bound::Memory);
  EXPECT_GT(found.seconds, countBytes(p) / 1e9);
}

TEST(CostModelTest, CtasThatTakeItemsInTurnAreAsManyAsMultiprocessors) {
  const ScheduleCosts &whole = costsOf(Schedule::CtaPerHead);
  Estimate inTurn = estimate(batch(8, 64, 64), hopper(), whole);
  EXPECT_TRUE(inTurn.inTurn);
  EXPECT_EQ(inTurn.ctas, 132);
  EXPECT_EQ(estimate(batch(1, 64, 64), hopper(), whole).ctas, 64);
  // Lengths that may differ have a CTA an item, which takes longer where all
  // are the same.
  Estimate each = estimate(packed(8, 8 * 64, 64, 64), hopper(), whole);
  EXPECT_FALSE(each.inTurn);
  EXPECT_EQ(each.ctas, 512);
  EXPECT_GT(each.seconds, inTurn.seconds);
  EXPECT_FALSE(
      estimate(batch(8, 64, 64), hopper(), costsOf(Schedule::CtaPerVTile))
          .inTurn);
}

TEST(CostModelTest, NothingToDoTakesNoTime) {
  Workload p = packed(1, 0, 64);
  p.sequences = 0;
  Choice choice = choose(p, hopper());
  EXPECT_EQ(choice.chosen().seconds, 0);
  EXPECT_EQ(choice.chosen().ctas, 0);
  EXPECT_EQ(choice.utilisation(), 0);
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

TEST(CostModelTest, FewItemsAreSplit) {
  EXPECT_EQ(choose(batch(1, 32768, 64), hopper()).schedule,
            Schedule::CtaPerVTile);
  EXPECT_EQ(choose(batch(2, 32768, 64), hopper()).schedule,
            Schedule::CtaPerHead);
}

TEST(CostModelTest, AKnownLongestSequenceDecides) {
  Chip chip = hopper();
  EXPECT_EQ(choose(packed(4, 32768, 64, 8192), chip).schedule,
            Schedule::CtaPerHead);
  Choice choice = choose(packed(4, 32768, 64, 30000), chip);
  EXPECT_EQ(choice.schedule, Schedule::CtaPerVTile);
  EXPECT_EQ(choice.longest, 30000);
  EXPECT_TRUE(choice.knowsLongest);
}

// The rule of `choose`, where it must be guessed.
TEST(CostModelTest, TwoSequencesAreTakenForUnequalMoreForEqual) {
  Choice two = choose(packed(2, 32768, 64), hopper());
  EXPECT_EQ(two.longest, 24576);
  EXPECT_FALSE(two.knowsLongest);
  EXPECT_EQ(two.schedule, Schedule::CtaPerVTile);
  Choice four = choose(packed(4, 32768, 32), hopper());
  EXPECT_EQ(four.longest, 8192);
  EXPECT_EQ(four.schedule, Schedule::CtaPerHead);
  // Two equal ones, known to be.
  EXPECT_EQ(choose(packed(2, 32768, 64, 16384), hopper()).schedule,
            Schedule::CtaPerHead);
}

// What the comment of `choose` says of the regrets: neither choice is safe.
TEST(CostModelTest, NeitherChoiceIsSafe) {
  for (int64_t sequences : {2, 4, 8}) {
    int64_t heads = 128 / sequences;
    Workload equal = batch(sequences, 32768 / sequences, heads),
             one = packed(sequences, 32768, heads, 32768);
    double ofSplit = secondsOf(equal, Schedule::CtaPerVTile) /
                     secondsOf(equal, Schedule::CtaPerHead),
           ofWhole = secondsOf(one, Schedule::CtaPerHead) /
                     secondsOf(one, Schedule::CtaPerVTile);
    EXPECT_NEAR(ofSplit, 1.23, 0.02) << sequences;
    EXPECT_NEAR(ofWhole, 1.56, 0.02) << sequences;
  }
}

TEST(CostModelTest, WhatIsUnknownIsMany) {
  Workload p;
  p.heads = 1;
  EXPECT_EQ(choose(p, hopper()).schedule, Schedule::CtaPerHead);
  p.sequences = 1;
  EXPECT_EQ(choose(p, hopper()).schedule, Schedule::CtaPerVTile);
  // A longest sequence of more tokens than there are is the call's error, not
  // the model's.
  EXPECT_EQ(choose(packed(2, 100, 1, 1000), hopper()).longest, 100);
}

// Of a file that nobody can run; no size may overflow.
TEST(CostModelTest, AnySizeHasAChoice) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  for (bool isPacked : {false, true})
    for (int64_t size : {most, int64_t(0), int64_t(-1)}) {
      Workload p = batch(size, size, size);
      p.packed = isPacked;
      p.longest = size;
      p.vTiles = size;
      Choice choice = choose(p, hopper());
      EXPECT_GE(choice.of(Schedule::CtaPerVTile).seconds, 0);
      EXPECT_GE(choice.longest, 0);
    }
}

TEST(CostModelTest, AForcedScheduleStays) {
  Choice choice = choose(batch(1, 32768, 64), hopper(), Schedule::CtaPerHead);
  EXPECT_EQ(choice.schedule, Schedule::CtaPerHead);
  EXPECT_LT(choice.of(Schedule::CtaPerVTile).seconds, choice.chosen().seconds);
}

TEST(CostModelTest, ALoserHasAReason) {
  Choice choice = choose(batch(1, 32768, 64), hopper());
  std::string reason = choice.whyNot(choice.of(Schedule::CtaPerHead));
  EXPECT_NE(reason.find(" ms predicted, cta_per_v_tile 0."), reason.npos)
      << reason;
  EXPECT_NE(reason.find(" ms: a CTA has 1024 chunks, one after the other"),
            reason.npos)
      << reason;
  choice = choose(batch(4, 8192, 64), hopper());
  reason = choice.whyNot(choice.of(Schedule::CtaPerVTile));
  EXPECT_NE(reason.find(" ms predicted, cta_per_head 0."), reason.npos)
      << reason;
  EXPECT_NE(reason.find(" ms: 512 CTAs, up to 4 of them on a multiprocessor "
                        "one after the other"),
            reason.npos)
      << reason;
}

// Four parts have no room in one CTA, one part is whole.
TEST(CostModelTest, PartsDecideWhatFits) {
  Workload p = batch(8, 4096, 64);
  p.valueChannels = 256;
  p.vTiles = 4;
  Choice choice = choose(p, hopper());
  EXPECT_EQ(choice.schedule, Schedule::CtaPerVTile);
  EXPECT_EQ(choice.whyNot(choice.of(Schedule::CtaPerHead)),
            "the states of all V tiles of a head do not fit the registers of a "
            "CTA");
  p.valueChannels = 64;
  p.vTiles = 1;
  EXPECT_EQ(choose(p, hopper()).schedule, Schedule::CtaPerHead);
  EXPECT_EQ(secondsOf(p, Schedule::CtaPerHead),
            secondsOf(p, Schedule::CtaPerVTile));
}

} // namespace
