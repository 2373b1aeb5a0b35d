//===- LoopsTest.cpp - Tiles that loops carry -----------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include "gtest/gtest.h"

/// Runs `body`, which makes %r of %a and %b, the two rows of a 2 x 16 array.
static Array run(const Array &x, const std::string &body) {
  std::string text =
      "%c1 = arith.constant 1 : index\n%c3 = arith.constant 3 : index\n"
      "%a = gdn_tile.load %x0[%c0, %c0] axes [1] : memref<2x16xf32> -> "
      "tensor<16xf32>\n"
      "%b = gdn_tile.load %x0[%c1, %c0] axes [1] : memref<2x16xf32> -> "
      "tensor<16xf32>\n" +
      body +
      "gdn_tile.store %r, %y[%c0] axes [0] : tensor<16xf32> -> "
      "memref<16xf32>\n";
  Array y = call(makeModule({"2x16"}, "16", text), {x}, 1);
  EXPECT_EQ(y.data.size(), 16u);
  y.data.resize(16);
  return y;
}

// Two tiles that change places every trip need a third buffer.
TEST(Loops, Swap) {
  Array x = Array::random({2, 16}, 1);
  Array y = run(x, R"(
    %s:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%u = %a, %v = %b)
        -> (tensor<16xf32>, tensor<16xf32>) {
      scf.yield %v, %u : tensor<16xf32>, tensor<16xf32>
    }
    %r = arith.subf %s#0, %s#1 : tensor<16xf32>
  )");
  for (int64_t i = 0; i < 16; ++i)
    EXPECT_EQ(y.at(i), x.at(1, i) - x.at(0, i));
}

// A tile that is read for the next trip while the old one is still in use.
TEST(Loops, LoadedAhead) {
  Array x = Array::random({2, 16}, 2);
  Array y = run(x, R"(
    %s:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%sum = %a, %u = %a)
        -> (tensor<16xf32>, tensor<16xf32>) {
      %next = gdn_tile.load %x0[%c1, %c0] axes [1] : memref<2x16xf32> -> tensor<16xf32>
      %new = arith.addf %sum, %u : tensor<16xf32>
      scf.yield %new, %next : tensor<16xf32>, tensor<16xf32>
    }
    %r = arith.addf %s#0, %s#1 : tensor<16xf32>
  )");
  for (int64_t i = 0; i < 16; ++i) {
    float a = x.at(0, i), b = x.at(1, i);
    EXPECT_FLOAT_EQ(y.at(i), a + a + b + b + b);
  }
}

// A state whose old value is needed after the new one is computed, in a branch
// that is taken and in one that is not.
TEST(Loops, OldStateAfterNew) {
  Array x = Array::random({2, 16}, 3);
  Array y = run(x, R"(
    %s:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%u = %a, %v = %b)
        -> (tensor<16xf32>, tensor<16xf32>) {
      %odd = arith.cmpi eq, %i, %c1 : index
      %new = scf.if %odd -> (tensor<16xf32>) {
        %double = arith.addf %u, %u : tensor<16xf32>
        scf.yield %double : tensor<16xf32>
      } else {
        scf.yield %u : tensor<16xf32>
      }
      %difference = arith.subf %new, %u : tensor<16xf32>
      %sum = arith.addf %v, %difference : tensor<16xf32>
      scf.yield %new, %sum : tensor<16xf32>, tensor<16xf32>
    }
    %r = arith.addf %s#0, %s#1 : tensor<16xf32>
  )");
  for (int64_t i = 0; i < 16; ++i) {
    float a = x.at(0, i), b = x.at(1, i);
    EXPECT_FLOAT_EQ(y.at(i), 2 * a + (b + a));
  }
}

// A loop whose trip count is found on the way.
TEST(Loops, While) {
  Array x = Array::random({2, 16}, 4);
  Array y = run(x, R"(
    %s:2 = scf.while (%i = %c0, %u = %a) : (index, tensor<16xf32>) -> (index, tensor<16xf32>) {
      %more = arith.cmpi slt, %i, %c3 : index
      scf.condition(%more) %i, %u : index, tensor<16xf32>
    } do {
    ^bb0(%i : index, %u : tensor<16xf32>):
      %next = arith.addi %i, %c1 : index
      %double = arith.addf %u, %u : tensor<16xf32>
      scf.yield %next, %double : index, tensor<16xf32>
    }
    %r = arith.addf %s#1, %b : tensor<16xf32>
  )");
  for (int64_t i = 0; i < 16; ++i)
    EXPECT_FLOAT_EQ(y.at(i), 8 * x.at(0, i) + x.at(1, i));
}
