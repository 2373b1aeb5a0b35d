//===- SavingTest.cpp - How a forward saves for its backward --------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sweep.h"
#include "gdn/CostModel/Training.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

using namespace gdn::cost;
using Kind = gdn::cost::SplitRequest::Kind;

namespace {

Workload packed(int64_t sequences, int64_t tokens, int64_t keyHeads,
                int64_t heads, int64_t longest) {
  Workload p;
  p.sequences = sequences;
  p.packed = true;
  p.tokens = tokens;
  p.longest = longest;
  p.keyHeads = keyHeads;
  p.heads = heads;
  p.stateBytes = 8;
  return p;
}

/// The segments that the package has memory for (python/gdn/kernels.json).
SavingLimits limitsOf(const Workload &p) {
  return {64, std::min<int64_t>(*p.tokens / 1024, 128 / p.heads)};
}

SavingChoice choose(const Workload &p, SplitRequest request = {}) {
  Chip chip = getDefaultChip();
  return chooseSaving(p, chip, gdn::cost::choose(p, chip), limitsOf(p),
                      request);
}

/// A row of docs/data/saving-h200.csv, with gates of FlashQLA's benchmark.
struct Measured {
  Workload workload;
  int64_t segments;
  Schedule schedule;
  double forward, backward;
};

std::vector<Measured> readTimes() {
  std::vector<Measured> rows;
  for (const std::vector<std::string> &fields : readRows(GDN_SAVING_TIMES)) {
    int64_t keyHeads = std::stoll(fields.at(0)),
            heads = std::stoll(fields.at(1));
    const std::string &lengths = fields.at(2);
    Measured row;
    row.segments = std::stoll(fields.at(3));
    row.forward = std::stod(fields.at(5));
    row.backward = std::stod(fields.at(6));
    int64_t tokens = lengths.substr(0, 2) == "32" ? 32768 : 8192;
    bool isOne = lengths.find("seq") == std::string::npos;
    int64_t longest = isOne ? tokens : tokens == 32768 ? 9932 : 3157;
    row.workload = packed(isOne ? 1 : 8, tokens, keyHeads, heads, longest);
    row.schedule = *findSchedule(fields.at(4));
    rows.push_back(row);
  }
  EXPECT_GE(rows.size(), 20u);
  return rows;
}

std::string nameOf(const Measured &row) {
  return std::to_string(row.workload.heads) + " heads, " +
         std::to_string(*row.workload.sequences) + " of " +
         std::to_string(*row.workload.tokens) + " tokens, " +
         std::to_string(row.segments) + " segments, " +
         std::string(row.schedule.name);
}

TEST(SavingTest, MeetsMeasuredTimes) {
  Chip chip = getDefaultChip();
  for (const Measured &row : readTimes()) {
    const Workload &p = row.workload;
    Choice whole = gdn::cost::choose(p, chip);
    int64_t length = row.segments ? *p.tokens / row.segments : 0;
    double forward =
        estimateSavingForward(p, chip, whole, length, row.schedule, 64).seconds;
    EXPECT_LE(std::abs(forward * 1e6 / row.forward - 1), 0.3)
        << nameOf(row) << ": predicted " << forward * 1e6 << " for "
        << row.forward;
    // Gradients of whole sequences did not follow the adjoint then.
    if (!length)
      continue;
    double backward = estimateSavedBackward(p, chip, whole, length, 64).seconds;
    EXPECT_LE(std::abs(backward * 1e6 / row.backward - 1), 0.1)
        << nameOf(row) << ": predicted " << backward * 1e6 << " for "
        << row.backward;
  }
}

/// So many sequences as one row of docs/data/following-h200.csv has them.
Workload followingProblem(int64_t keyHeads, int64_t heads,
                          const std::string &lengths) {
  if (lengths == "32k-8seq")
    return packed(8, 32768, keyHeads, heads, 9932);
  size_t cross = lengths.find('x');
  int64_t tokens = std::stoll(lengths), sequences = 1;
  if (cross != std::string::npos)
    sequences = std::stoll(lengths.substr(cross + 1));
  return packed(sequences, sequences * tokens, keyHeads, heads, tokens);
}

TEST(SavingTest, FollowingGradientsMeetMeasuredTimes) {
  Chip chip = getDefaultChip();
  // By sizes, the times of both schedules.
  std::map<std::string, std::map<std::string, double>> times;
  for (const std::vector<std::string> &fields : readRows(GDN_FOLLOWING_TIMES)) {
    const std::string &lengths = fields.at(2), &schedule = fields.at(3);
    double us = std::stod(fields.at(4));
    std::string sizes = lengths + ", " + fields.at(0);
    Workload p = followingProblem(std::stoll(fields.at(0)),
                                  std::stoll(fields.at(1)), lengths);
    double predicted = estimateFollowingBackward(p, chip, *p.longest, 128,
                                                 *findSchedule(schedule));
    EXPECT_LE(std::abs(predicted * 1e6 / us - 1), 0.12)
        << sizes << ", " << schedule << ": predicted " << predicted * 1e6;
    auto &both = times[sizes];
    both[schedule] = us;
    if (both.size() < 2)
      continue;
    Schedule chosen =
        estimateSavedBackward(p, chip, gdn::cost::choose(p, chip), 0, 128)
            .schedule;
    EXPECT_LE(both[std::string(chosen.name)],
              1.01 * std::min(both["cta_per_head"], both["cta_per_v_tile"]))
        << sizes;
  }
  EXPECT_EQ(times.size(), 8u);
}

TEST(SavingTest, ChoosesWhatIsFast) {
  // Of forwards and of backwards, which are cut apart.
  std::map<std::array<int64_t, 5>, double> best, chosen;
  for (const Measured &row : readTimes()) {
    const Workload &p = row.workload;
    SavingChoice choice = choose(p);
    auto note = [&](bool isForward, const PassEstimate &found, double us) {
      std::array<int64_t, 5> sizes = {isForward, p.keyHeads, p.heads,
                                      *p.sequences, *p.tokens};
      best.try_emplace(sizes, us);
      best[sizes] = std::min(best[sizes], us);
      int64_t segments = found.length ? *p.tokens / found.length : 0;
      if (segments == row.segments &&
          (!isForward || found.schedule == row.schedule))
        chosen[sizes] = us;
    };
    note(true, choice.forward, row.forward);
    note(false, choice.backward, row.backward);
  }
  for (auto [sizes, us] : best) {
    ASSERT_EQ(chosen.count(sizes), 1u)
        << sizes[0] << ", " << sizes[2] << " heads, " << sizes[4];
    EXPECT_LE(chosen[sizes], 1.1 * us)
        << sizes[0] << ", " << sizes[2] << " heads, " << sizes[4];
  }
}

TEST(SavingTest, PaysWhereReplayDoesNotRunBesideAdjoint) {
  EXPECT_TRUE(choose(packed(8, 32768, 16, 32, 9932)).pays());
  EXPECT_TRUE(choose(packed(8, 8192, 16, 32, 3157)).pays());
  // There it does, but the gradients follow the adjoint.
  EXPECT_TRUE(choose(packed(1, 32768, 16, 32, 32768)).pays());
  // A forward that saves nothing has faster segments.
  SplitRequest request;
  request.ownStarts = true;
  EXPECT_FALSE(choose(packed(1, 8192, 16, 32, 8192), request).pays());
}

TEST(SavingTest, PaysInSegments) {
  for (auto [keyHeads, heads] : {std::pair(2, 4), {4, 8}, {8, 16}}) {
    SavingChoice choice = choose(packed(1, 32768, keyHeads, heads, 32768));
    EXPECT_GT(choice.forward.length, 0) << heads << " heads";
    EXPECT_GT(choice.backward.length, 0) << heads << " heads";
    EXPECT_TRUE(choice.pays()) << heads << " heads";
  }
}

TEST(SavingTest, CutsTheForwardAlone) {
  // Enough heads for a recurrence that runs alone, too few for a forward.
  SavingChoice choice = choose(packed(3, 65536, 6, 12, 21846));
  EXPECT_GT(choice.forward.length, 0);
  EXPECT_EQ(choice.backward.length, 0);
  EXPECT_TRUE(choice.pays());
}

TEST(SavingTest, TheCallerDecides) {
  Workload p = packed(1, 32768, 4, 8, 32768);
  auto lengthOf = [&](SplitRequest request) {
    SavingChoice choice = choose(p, request);
    EXPECT_EQ(choice.forward.length, choice.backward.length);
    return choice.forward.length;
  };
  EXPECT_EQ(lengthOf({Kind::Never}), 0);
  EXPECT_EQ(lengthOf({Kind::Segments, 1}), 0);
  EXPECT_EQ(lengthOf({Kind::Segments, 3}), 10944);
  EXPECT_EQ(lengthOf({Kind::Length, 8192}), 8192);
  // There is memory for 16 segments besides one, and so for this length.
  EXPECT_EQ(lengthOf({Kind::Length, 64}), 1984);
  EXPECT_EQ(lengthOf({Kind::Length, 32768}), 0);
  // Of packed sequences nobody knows the longest.
  Workload some = packed(7, 4096, 4, 8, 700);
  EXPECT_EQ(choose(some, {Kind::Length, 1024}).forward.length, 1024);
}

TEST(SavingTest, WithoutGatesNothingIsForgotten) {
  Workload p = packed(1, 32768, 8, 16, 32768);
  SplitRequest request;
  request.decays = false;
  SavingChoice never = choose(p, request), some = choose(p);
  EXPECT_GT(never.seconds(), some.seconds());
  EXPECT_EQ(never.forward.noDecaySeconds, 0);
  EXPECT_EQ(never.backward.noDecaySeconds, 0);
}

/// Times of docs/experiments/kda.md: of a forward that saves, and of it and its
/// backward.
TEST(SavingTest, GatesOfChannelsPayInManyWorkItems) {
  struct {
    Workload workload;
    double forward, both;
    bool pays;
  } cases[] = {{packed(1, 8192, 12, 12, 8192), 328.5, 790, false},
               {packed(1, 8192, 32, 32, 8192), 343.7, 1046, false},
               {packed(1, 8192, 96, 96, 8192), 738.3, 2575, true},
               {packed(8, 32768, 32, 32, 4096), 0, 3168, true}};
  Chip chip = getDefaultChip();
  for (auto &[p, forward, both, pays] : cases) {
    p.gatesChannels = true;
    p.stage = "fused";
    SavingLimits limits = limitsOf(p);
    limits.hasSegments = false;
    SplitRequest request;
    request.ownStarts = request.hasTwoLengths = true;
    SavingChoice found =
        chooseSaving(p, chip, gdn::cost::choose(p, chip), limits, request);
    if (forward)
      EXPECT_NEAR(found.forward.seconds * 1e6 / forward, 1, 0.1) << p.heads;
    EXPECT_NEAR(found.seconds() * 1e6 / both, 1, 0.12) << p.heads;
    EXPECT_EQ(found.pays(), pays) << p.heads << ": " << found.inputsSeconds;
  }
}

/// A caller may have no size choose the schedule.
TEST(Saving, ASizeNeedNotChooseTheSchedule) {
  Workload p = packed(1, 8192, 4, 8, 8192);
  Chip chip = getDefaultChip();
  SavingLimits limits = limitsOf(p);
  limits.hasSegments = false;
  for (bool isPerHead : {false, true}) {
    limits.isPerHead = isPerHead;
    SavingChoice found =
        chooseSaving(p, chip, gdn::cost::choose(p, chip), limits, {});
    EXPECT_EQ(found.forward.schedule == Schedule::CtaPerHead, isPerHead);
  }
}

} // namespace
