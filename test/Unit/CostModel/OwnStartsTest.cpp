//===- OwnStartsTest.cpp - Choices against times of own starts ------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sweep.h"

using namespace gdn::cost;

namespace {

/// The kernels that the sweep measured, which are those of the package.
SweepModel makeModel() {
  SplitRequest request;
  request.ownStarts = true;
  return SweepModel(request);
}

std::vector<Sweep> readTimes() {
  return readSweep(GDN_OWN_STARTS_TIMES, /*hasParts=*/true);
}

/// The host does not know the gates, so one number of segments serves all
/// kinds. These take more than 5 % over the best number for their own kind.
const std::set<std::string> kNotTheBest = {
    "16 heads, 32768 tokens, gates -0.001",
    "16 heads, 131072 tokens, gates qla",
};

TEST(OwnStartsTest, ChoicesAreNearTheBest) {
  std::vector<Sweep> sweeps = readTimes();
  EXPECT_GE(sweeps.size(), 50u);
  makeModel().expectNearTheBest(sweeps, kNotTheBest);
}

// 32 heads of 8192 tokens gain 26 % by the gates of models, and lose this by
// slow ones.
TEST(OwnStartsTest, NoChoiceLosesMuchToWholeSequences) {
  makeModel().expectNoLoss(readTimes(), [](const Sweep &sweep) {
    return sweep.heads == 32 && sweep.tokens == 8192 ? 1.05 : 1.03;
  });
}

// Where segments lose by far, nobody asks how much.
TEST(OwnStartsTest, TimesArePredicted) {
  SweepModel model = makeModel();
  for (const Sweep &sweep : readTimes())
    for (const auto &[cut, seconds] : sweep.split) {
      // Shorter parts are not chosen.
      bool isShort = sweep.tokens < 256 * cut.first * cut.second;
      if (isShort || seconds > 1.3 * sweep.whole)
        continue;
      double predicted = model.predict(sweep, cut);
      EXPECT_NEAR(predicted / seconds, 1, 0.17)
          << sweep.name() << ", " << cut.first << " segments of " << cut.second
          << " parts: " << predicted;
    }
}

/// A sequence's predicted seconds in segments of one length, and what chooses
/// between lengths.
struct Call {
  Workload workload;
  Chip chip = getDefaultChip(132);
  SplitRequest request;

  Call(int64_t heads, int64_t tokens, int64_t sequences = 1) {
    workload.sequences = sequences;
    workload.packed = true;
    workload.tokens = tokens;
    workload.keyHeads = workload.heads = heads;
    request.ownStarts = true;
  }
  Choice whole() const { return choose(workload, chip); }
  SplitChoice split() const {
    return chooseSplit(workload, chip, whole(), request);
  }
};

// An H100 computes these as an H200 does. Of 32 heads it waits for its memory.
TEST(OwnStartsTest, TimesOfTodaysKernelsArePredicted) {
  auto rows = readRows(GDN_OWN_STARTS_TIMES_H100);
  EXPECT_EQ(rows.size(), 110u);
  for (const std::vector<std::string> &fields : rows) {
    ASSERT_EQ(fields.size(), 7u);
    Call call(std::stoll(fields[1]), std::stoll(fields[2]));
    SplitEstimate estimate = estimateSplit(
        call.workload, call.chip, call.whole(),
        {std::stoll(fields[4]), std::stoll(fields[5])}, call.request);
    double predicted =
        fields[3] == "qla" ? estimate.seconds() : estimate.slowSeconds();
    EXPECT_NEAR(predicted / (std::stod(fields[6]) * 1e-6), 1, 0.14)
        << fields[1] << " heads, " << fields[2] << " tokens, gates "
        << fields[3] << ", " << fields[4] << " tokens in " << fields[5]
        << " parts";
  }
}

// 8 heads of 32768 tokens take 134 us in segments of 1088 tokens and 146 in
// those of 2048 where two heads keep their states, and 227 and 188 where all do
// (H100).
TEST(OwnStartsTest, TheDeviceChoosesOfTwoLengths) {
  Call call(8, 32768);
  SplitEstimate one = *call.split().best;
  EXPECT_EQ(one.longerLength, 0);
  call.request.hasTwoLengths = true;
  SplitEstimate two = *call.split().best;
  EXPECT_EQ(two.longerLength, one.length);
  EXPECT_LT(two.length, one.length);
  EXPECT_LT(two.seconds(), 0.98 * one.seconds());
  // The sample, and CTAs of segments that are not there.
  EXPECT_NEAR(two.slowSeconds() / one.slowSeconds(), 1, 0.03);
  call.request.decays = false;
  EXPECT_EQ(call.split().best->longerLength, 0);
}

// Of segments of a caller's length no kernel depends on how many there are: not
// the one that launches the forward late, either.
TEST(OwnStartsTest, ACallersLengthIsNeverLate) {
  Call call(32, 32768);
  call.request.kind = SplitRequest::Kind::Segments;
  call.request.value = 4;
  ASSERT_EQ(call.split().best->length, 8192);
  EXPECT_TRUE(call.split().best->isLate);
  call.request.kind = SplitRequest::Kind::Length;
  call.request.value = 8192;
  EXPECT_FALSE(call.split().best->isLate);
}

TEST(OwnStartsTest, OneLengthWhereTheCallerSaysIt) {
  Call call(8, 32768);
  call.request.hasTwoLengths = true;
  call.request.kind = SplitRequest::Kind::Segments;
  call.request.value = 16;
  EXPECT_EQ(call.split().best->longerLength, 0);
  call.request.kind = SplitRequest::Kind::Length;
  call.request.value = 2048;
  EXPECT_EQ(call.split().best->longerLength, 0);
}

} // namespace
