//===- CompareTest.cpp - Error measures and tolerances ----------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Reference/Reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace gdn::reference;

static const double infinity = std::numeric_limits<double>::infinity();

TEST(CompareTest, Measures) {
  Error error = compare({3, 0, -4, 1}, {3, 0, -4, 0});
  EXPECT_DOUBLE_EQ(error.relRms, 0.2);
  EXPECT_EQ(error.maxAbs, 1);
  EXPECT_EQ(error.maxRef, 4);
}

// A sum whose terms cancel is measured against the size that they have.
TEST(CompareTest, MeasuresSumsAgainstTheirTerms) {
  Error error = compare({0.5, 10}, {0, 10}, {3, 4});
  EXPECT_DOUBLE_EQ(error.relRms, 0.5 / std::sqrt(109.0));
  EXPECT_DOUBLE_EQ(error.maxAbs, 0.5);
  EXPECT_DOUBLE_EQ(error.maxRef, 10);
  EXPECT_FALSE(accepts({1, 1}, compare({1, 1}, {1, 1}, {1})));
}

TEST(CompareTest, EqualArrays) {
  EXPECT_EQ(compare({1, -2}, {1, -2}).relRms, 0);
  EXPECT_EQ(compare({0, 0}, {0, 0}).relRms, 0);
  EXPECT_TRUE(accepts({0, 0}, compare({}, {})));
}

// Whatever is not a number, and any difference in size, fails every tolerance.
TEST(CompareTest, NonFiniteAndSizesFail) {
  Tolerance wide = {1e300, 1e300};
  for (double bad : {std::nan(""), infinity, -infinity}) {
    EXPECT_EQ(compare({1, bad, 2}, {1, 1, 2}).relRms, infinity);
    EXPECT_FALSE(accepts(wide, compare({1, bad, 2}, {1, 1, 2})));
    EXPECT_FALSE(accepts(wide, compare({1, 1}, {1, bad})));
    EXPECT_FALSE(accepts(wide, compare({1, bad}, {1, bad})));
  }
  EXPECT_FALSE(accepts(wide, compare({1, 2}, {1})));
  EXPECT_FALSE(accepts(wide, compare({}, {1})));
}

TEST(CompareTest, ZeroReferenceAcceptsOnlyZero) {
  Tolerance wide = {1e300, 1e300};
  EXPECT_FALSE(accepts(wide, compare({1e-30}, {0})));
  EXPECT_FALSE(accepts(wide, compare({1e-300}, {0})));
  EXPECT_TRUE(accepts({0, 0}, compare({0}, {0})));
}

TEST(CompareTest, BothNormsCount) {
  EXPECT_TRUE(accepts({1e-2, 2e-2}, {1e-2, 0.04, 2}));
  EXPECT_FALSE(accepts({1e-2, 2e-2}, {1.1e-2, 0.04, 2}));
  EXPECT_FALSE(accepts({1e-2, 2e-2}, {1e-2, 0.05, 2}));
  EXPECT_FALSE(accepts({1, 1}, {std::nan(""), 0, 1}));
  EXPECT_FALSE(accepts({1, 1}, {0, std::nan(""), 1}));
}

TEST(CompareTest, TolerancesOfSpec9) {
  EXPECT_EQ(tolerance(Output::O).relRms, 6e-3);
  EXPECT_EQ(tolerance(Output::O).maxNorm, 2e-2);
  EXPECT_EQ(tolerance(Output::DK).relRms, 8e-3);
  EXPECT_EQ(tolerance(Output::DK).maxNorm, 4e-2);
  EXPECT_EQ(tolerance(Output::DGate).relRms, 1e-2);
  EXPECT_EQ(tolerance(Output::DDtBias).relRms, 1e-2);

  Numerics rounded;
  rounded.roundedState = true;
  EXPECT_EQ(tolerance(Output::FinalState).relRms, 6e-3);
  EXPECT_EQ(tolerance(Output::FinalState, rounded).relRms, 1e-2);
  EXPECT_EQ(tolerance(Output::O, rounded).relRms, 6e-3);

  Numerics split;
  split.splitSequence = true;
  EXPECT_DOUBLE_EQ(tolerance(Output::O, split).relRms, 8e-3);

  Numerics float32;
  float32.float32Operands = true;
  EXPECT_EQ(tolerance(Output::DGate, float32).relRms, 1e-5);
}
