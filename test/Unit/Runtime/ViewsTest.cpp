//===- ViewsTest.cpp - Arrays with other dimensions -----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestFunction.h"

#include <algorithm>
#include <cstring>

using Views = RuntimeTest;

template <typename T> static T at(const FakeLaunch &launch, size_t offset) {
  T value;
  memcpy(&value, launch.parameters + offset, sizeof(value));
  return value;
}

namespace {
/// The first kernel alone, of which x is a view: every third token from the
/// second one on, or all tokens and heads as one dimension.
struct ViewFunction : TestFunction {
  GdnViewDim parts[2] = {{0, 0, stepOne, stepN, stepH}, {1, 1, -1, -1, -1}};
  GdnViewDim joined[2] = {{0, -1, -1, -1, -1}, {0, 1, -1, -1, -1}};
  GdnViewDesc view = {{GDN_OPERAND_ARGUMENT, 0}, 2, parts};
  GdnParamDesc params[3] = {{GDN_PARAM_POINTER, 0, 0, 0},
                            {GDN_PARAM_EXTENT, 0, 0, GDN_DTYPE_I64},
                            {GDN_PARAM_STRIDE, 0, 0, GDN_DTYPE_I64}};
  FakeParam sizes[3] = {{0, 8}, {8, 8}, {16, 8}};

  ViewFunction() {
    firstOperands[0] = {GDN_OPERAND_VIEW, 0};
    first.params = params;
    first.num_params = 3;
    desc.views = &view;
    desc.num_views = 1;
    desc.num_launches = 1;
    fakeSetParams(sizes, 3);
  }
};
} // namespace

TEST_F(Views, HaveTheirOwnAddressExtentsAndStrides) {
  ViewFunction function;
  ASSERT_EQ(gdnFunctionPrepare(&function.desc, 0), GDN_SUCCESS) << message();
  TestCall call;
  // The second call is a known one, with another address.
  for (uint64_t place : {0x1000, 0x3000}) {
    call.x.data = fakeAddress(0, place);
    ASSERT_EQ(call.launch(function), GDN_SUCCESS) << message();
    const FakeLaunch &last = *fakeLastLaunch();
    EXPECT_EQ(at<char *>(last, 0), static_cast<char *>(call.x.data) + 3 * 4);
    EXPECT_EQ(at<int64_t>(last, 8), 3);
    EXPECT_EQ(at<int64_t>(last, 16), 9);
  }
}

TEST_F(Views, JoinDimensionsThatLieOneBehindTheOther) {
  ViewFunction function;
  function.view.dims = function.joined;
  function.params[1].dim = function.params[2].dim = 1;
  ASSERT_EQ(gdnFunctionPrepare(&function.desc, 0), GDN_SUCCESS) << message();
  TestCall call;
  int64_t strides[2] = {12, 4};
  call.x.strides = strides;
  ASSERT_EQ(call.launch(function), GDN_SUCCESS) << message();
  EXPECT_EQ(at<int64_t>(*fakeLastLaunch(), 8), 390);
  EXPECT_EQ(at<int64_t>(*fakeLastLaunch(), 16), 4);
  strides[0] = 16;
  EXPECT_EQ(call.launch(function), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "expected dimensions 0 to 1 of x to lie one behind the "
                       "other, got a stride of 16 for 12");
  // Entries that are all the same are no reason to pass over their dimension.
  strides[1] = 0;
  EXPECT_EQ(call.launch(function), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "expected dimensions 0 to 1 of x to lie one behind the "
                       "other, got a stride of 16 for 0");
  strides[1] = 4;
  // A dimension of one entry has any stride.
  call.shapeX[0] = 1;
  EXPECT_EQ(call.launch(function), GDN_SUCCESS) << message();
}

TEST_F(Views, StayWithinTheArray) {
  ViewFunction function;
  ASSERT_EQ(gdnFunctionPrepare(&function.desc, 0), GDN_SUCCESS) << message();
  TestCall call;
  // Three of every third token from the second one on.
  call.shapeX[0] = 7;
  EXPECT_EQ(call.launch(function), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "expected a part of the 7 entries along dimension 0 of "
                       "x, got 3 from 1 on, every 3");
  call.shapeX[0] = 8;
  EXPECT_EQ(call.launch(function), GDN_SUCCESS) << message();
}

TEST_F(Views, AreAlignedInEveryCall) {
  ViewFunction function;
  function.firstArgs[0].alignment = 16;
  ASSERT_EQ(gdnFunctionPrepare(&function.desc, 0), GDN_SUCCESS) << message();
  TestCall call;
  // Of x and its view, 12 bytes behind, one alone can be aligned.
  call.x.data = fakeAddress(0, 0x1004);
  ASSERT_EQ(call.launch(function), GDN_SUCCESS) << message();
  call.x.data = fakeAddress(0, 0x1000);
  EXPECT_EQ(call.launch(function), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(message().find("aligned to 16 bytes"), std::string::npos)
      << message();
}

TEST_F(Views, AreRefusedIfTheirEndOverflows) {
  ViewFunction function;
  constexpr int64_t kLarge = int64_t(1) << 62;
  // 9 entries, each 2^62 behind the one before it: 2^65 wraps to 0.
  GdnIndexStep steps[9];
  std::copy(std::begin(function.steps), std::end(function.steps), steps);
  steps[7] = {GDN_INDEX_CONSTANT, 0, 0, kLarge};
  steps[8] = {GDN_INDEX_CONSTANT, 0, 0, 9};
  function.desc.steps = steps;
  function.desc.num_steps = 9;
  function.parts[0] = {0, 0, stepOne, 8, 7};
  ASSERT_EQ(gdnFunctionPrepare(&function.desc, 0), GDN_SUCCESS) << message();
  TestCall call;
  EXPECT_EQ(call.launch(function), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(message().find("expected a part of the"), std::string::npos)
      << message();
}

TEST_F(Views, NameDimensionsInOrder) {
  ViewFunction function;
  function.parts[1].first = function.parts[1].last = 0;
  EXPECT_EQ(gdnFunctionPrepare(&function.desc, 0), GDN_ERROR_INVALID_KERNEL);
  EXPECT_EQ(message(),
            "function 'pool': expected view 0 to name dimensions of an "
            "argument or a temporary in order, and steps, got rank 2");
}

TEST_F(Views, OfAbsentArraysAreAbsent) {
  ViewFunction function;
  function.args[0].flags = GDN_ARG_FLAG_OPTIONAL;
  function.firstArgs[0].flags = GDN_ARG_FLAG_OPTIONAL;
  function.desc.num_rules = 0;
  function.launches[0].grid[1] = stepOne;
  ASSERT_EQ(gdnFunctionPrepare(&function.desc, 0), GDN_SUCCESS) << message();
  TestCall call;
  call.args[0].value.tensor = nullptr;
  ASSERT_EQ(call.launch(function), GDN_SUCCESS) << message();
  EXPECT_EQ(at<void *>(*fakeLastLaunch(), 0), nullptr);
}
