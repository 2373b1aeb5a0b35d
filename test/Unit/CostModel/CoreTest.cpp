//===- CoreTest.cpp - What a core of a CPU takes --------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/CostModel/CostModel.h"

#include "gtest/gtest.h"

using namespace gdn::cost;

TEST(CoreTest, ACoreTakesChunksAndTokens) {
  const Core &core = coreOf(CoreLevel::V4, CoreOperand::F32);
  double item = chunkedSeconds(core, 0, 128, 128, 32, false);
  EXPECT_DOUBLE_EQ(chunkedSeconds(core, 33, 128, 128, 32, false) - item,
                   64 * 163840 / core.flopPerSecond);
  EXPECT_DOUBLE_EQ(recurrentSeconds(core, 10, 64, 128, false) - item,
                   10 * 64 * 128 / core.updatesPerSecond);
  // Gates a channel take longer.
  EXPECT_DOUBLE_EQ(chunkedSeconds(core, 33, 128, 128, 32, true),
                   1.5 * chunkedSeconds(core, 33, 128, 128, 32, false));
  EXPECT_DOUBLE_EQ(recurrentSeconds(core, 10, 64, 128, true),
                   1.2 * recurrentSeconds(core, 10, 64, 128, false));
  // Instructions for bf16 are no help to others.
  EXPECT_EQ(&coreOf(CoreLevel::V4BF16, CoreOperand::F32), &core);
  EXPECT_EQ(coreOf(CoreLevel::V4BF16, CoreOperand::BF16).level,
            CoreLevel::V4BF16);
}
