//===- AccessTest.cpp - Loads and stores at the end of a sequence ---------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>

/// Copies 8 tokens of each sequence from its first one on, through a tile with
/// the given axes, into the array %z of old values.
static std::string makeCopy(bool turned, bool untilEnd) {
  std::string axes = turned ? "axes [2, 0]" : "axes [0, 2]";
  std::string tile = turned ? "tensor<16x8xf32>" : "tensor<8x16xf32>";
  std::string until = untilEnd ? " until(%end, dim = 0)" : "";
  return R"(
gdn_tile.program @copy(%x : memref<?x2x16xf32>) outs(%y : memref<?x2x16xf32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %t = gdn_tile.load %x[%begin, %h, %c0] )" +
         axes + R"( until(%end, dim = 0) : memref<?x2x16xf32> -> )" + tile +
         R"(
  gdn_tile.store %t, %y[%begin, %h, %c0] )" +
         axes + until + " : " + tile + R"( -> memref<?x2x16xf32>
}
func.func @f(%x : tensor<?x2x16xf32>, %z : tensor<?x2x16xf32>, %cu : tensor<?xi32>)
    -> tensor<?x2x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %t = tensor.dim %x, %c0 : tensor<?x2x16xf32>
  %b = tensor.dim %cu, %c0 : tensor<?xi32>
  %n = arith.subi %b, %c1 : index
  %r = gdn_tile.launch @copy grid(%n, %c2, %c1) tokens(%t) cu_seqlens(%cu : tensor<?xi32>)
      ins(%x : tensor<?x2x16xf32>) outs(%z : tensor<?x2x16xf32>) -> tensor<?x2x16xf32>
  return %r : tensor<?x2x16xf32>
}
)";
}

/// Token t of the input, NaN outside [begin, end); old values are -1.
static Array makeTokens(int64_t tokens, int64_t begin, int64_t end) {
  Array array = Array::random({tokens, 2, 16}, 1);
  for (int64_t i = 0; i < tokens * 32; ++i)
    if (i / 32 < begin || i / 32 >= end)
      array.data[i] = std::numeric_limits<float>::quiet_NaN();
  return array;
}
static Array makeOld(int64_t tokens) {
  return {{tokens, 2, 16}, std::vector<float>(tokens * 32, -1.0f)};
}

class Access : public testing::TestWithParam<bool> {};

// Rows at and beyond the end read as zero: the NaN there must not be seen.
TEST_P(Access, ReadsZeroBeyondTheEnd) {
  Array x = makeTokens(20, 3, 8);
  Array y = call(makeCopy(GetParam(), /*untilEnd=*/false), {x, makeOld(20)}, 3,
                 {}, {3, 8});
  ASSERT_EQ(y.data.size(), x.data.size());
  for (int64_t i = 0; i < 20 * 32; ++i) {
    int64_t token = i / 32;
    float expected = token >= 3 && token < 8    ? x.data[i]
                     : token >= 8 && token < 11 ? 0.0f
                                                : -1.0f;
    EXPECT_EQ(y.data[i], expected) << "token " << token;
  }
}

// A store leaves what lies beyond the end as it was; the caller's own array of
// old values is not written.
TEST_P(Access, WritesNothingBeyondTheEnd) {
  Array x = makeTokens(20, 0, 20), old = makeOld(20);
  Array y = call(makeCopy(GetParam(), /*untilEnd=*/true), {x, old}, 3,
                 {0, /*parallel=*/true}, {0, 0, 5, 6, 19});
  ASSERT_EQ(y.data.size(), x.data.size());
  for (int64_t i = 0; i < 20 * 32; ++i) {
    int64_t token = i / 32;
    // The last sequence has more tokens than the tile.
    float expected = token < 14 ? x.data[i] : -1.0f;
    EXPECT_EQ(y.data[i], expected) << "token " << token;
  }
}

// Boundaries that are negative, beyond the array or not sorted touch no memory
// outside it, and no token twice: by the binary search of gdn_tile.launch the
// sequences are [0, 2) and [2, 12), of which a tile has 8 tokens.
TEST_P(Access, ClampsBoundaries) {
  Array x = makeTokens(12, 0, 12);
  Array y = call(makeCopy(GetParam(), /*untilEnd=*/true), {x, makeOld(12)}, 3,
                 {}, {-100, 4, 2, 1 << 30, 12});
  ASSERT_EQ(y.data.size(), x.data.size());
  for (int64_t i = 0; i < 12 * 32; ++i)
    EXPECT_EQ(y.data[i], i / 32 < 10 ? x.data[i] : -1.0f) << "token " << i / 32;
}

// Behind the last boundary there is no sequence.
TEST_P(Access, ReadsNothingBehindTheLastBoundary) {
  Array x = makeTokens(12, 0, 12);
  Array y = call(makeCopy(GetParam(), /*untilEnd=*/true), {x, makeOld(12)}, 3,
                 {}, {0, 4, 8, 12, -1});
  ASSERT_EQ(y.data.size(), x.data.size());
  for (float value : y.data)
    EXPECT_EQ(value, -1.0f);
}

// The caller frees every result: one that is an argument must be a copy of it.
TEST(Interface, ResultsAreFresh) {
  Array x = Array::random({5}, 2);
  Array y = call("func.func @f(%x : tensor<?xf32>) -> tensor<?xf32> {\n"
                 "  return %x : tensor<?xf32>\n}",
                 {x}, 1);
  EXPECT_EQ(y.data, x.data);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Access, testing::Values(false, true));
