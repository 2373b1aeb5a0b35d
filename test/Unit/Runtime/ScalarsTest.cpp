//===- ScalarsTest.cpp - Functions that take scalars ----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestKnownCalls.h"

namespace {
/// What the second kernel was launched with.
struct Got {
  int launches;
  int64_t count;
  int32_t number;
  float scale;
};
thread_local Got got;

/// y [count] of x: the first kernel has a block for each of `count`, the second
/// one takes `count` plus the tokens, `number` and `scale`.
struct ScalarFunction : MappedFunction {
  GdnArgDesc all[5] = {{"x", GDN_ARG_TENSOR, GDN_DTYPE_F32, 2, 0, shapeX, 0},
                       {"count", GDN_ARG_I64, 0, 0, 0, nullptr, 0},
                       {"number", GDN_ARG_I32, 0, 0, 0, nullptr, 0},
                       {"scale", GDN_ARG_F32, 0, 0, 0, nullptr, 0},
                       {"y", GDN_ARG_TENSOR, GDN_DTYPE_F32, 1, 0, shapeY, 0}};
  GdnArgDesc scalars[4] = {{"chunks", GDN_ARG_TENSOR, GDN_DTYPE_F32, 2,
                            GDN_ARG_FLAG_CONTIGUOUS, shapeX, 0},
                           {"count", GDN_ARG_I64, 0, 0, 0, nullptr, 0},
                           {"number", GDN_ARG_I32, 0, 0, 0, nullptr, 0},
                           {"scale", GDN_ARG_F32, 0, 0, 0, nullptr, 0}};
  GdnParamDesc params[3] = {{GDN_PARAM_SCALAR, 1, 0, 0},
                            {GDN_PARAM_SCALAR, 2, 0, 0},
                            {GDN_PARAM_SCALAR, 3, 0, 0}};
  GdnOperand operands[4] = {{GDN_OPERAND_TEMPORARY, 1},
                            {GDN_OPERAND_INDEX, stepN},
                            {GDN_OPERAND_ARGUMENT, 2},
                            {GDN_OPERAND_ARGUMENT, 3}};

  ScalarFunction() {
    steps[stepN1] = {GDN_INDEX_SCALAR, 1, 0, 0};
    steps[stepN] = {GDN_INDEX_ADD, stepN1, stepT, 0};
    rule = {4, 0, stepN1};
    launches[0].grid[0] = stepN1;
    launches[1].operands = operands;
    launches[1].num_operands = 4;
    second.args = scalars;
    second.num_args = 4;
    second.params = params;
    second.num_params = 3;
    second.num_tensor_maps = 0;
    results[0] = 4;
    desc.num_inputs = 4;
    desc.num_args = 5;
    desc.args = all;
  }

  void prepare(int paramsOfFirst = 2) {
    static constexpr FakeParam places[] = {{0, 128}, {128, 8}},
                               numbers[] = {{0, 8}, {8, 4}, {12, 4}};
    fakeSetParams(places, paramsOfFirst);
    GdnKernel *kernel;
    ASSERT_EQ(gdnKernelLoad(&first, &kernel), GDN_SUCCESS);
    ASSERT_EQ(gdnKernelPrepare(kernel, 0), GDN_SUCCESS);
    fakeSetParams(numbers, 3);
    ASSERT_EQ(gdnFunctionPrepare(&desc, 0), GDN_SUCCESS)
        << gdnGetLastErrorMessage();
    ASSERT_EQ(gdnKernelUnload(kernel), GDN_SUCCESS);
    fakeSetParams(numbers, 0);
  }
};

/// 130 tokens of 4 heads.
struct ScalarCall : MappedCall {
  GdnArg all[5] = {};

  ScalarCall() {
    shapeY[0] = 7;
    all[0] = args[0];
    all[1].kind = GDN_ARG_I64;
    all[1].value.i64 = 7;
    all[2].kind = GDN_ARG_I32;
    all[2].value.i32 = -3;
    all[3].kind = GDN_ARG_F32;
    all[3].value.f32 = 0.5f;
    all[4] = args[2];
  }

  GdnRuntimeStatus launch(const ScalarFunction &function) {
    return gdnFunctionLaunch(&function.desc, all, 5, workspace, 4096,
                             fakeStream(0));
  }
};

class Scalars : public RuntimeTest {
protected:
  ScalarFunction function;
  ScalarCall call;

  void SetUp() override {
    RuntimeTest::SetUp();
    got = {};
    fakeWatch([](const char *kernel, void **parameters) {
      if (strcmp(kernel, "second") != 0)
        return;
      ++got.launches;
      got.count = read<int64_t>(parameters[0]);
      got.number = read<int32_t>(parameters[1]);
      got.scale = read<float>(parameters[2]);
    });
  }

  /// Launches, and counts the tensor maps that are encoded: none for a known
  /// call.
  int encodes() {
    int before = fakeCount("cuTensorMapEncodeTiled");
    EXPECT_EQ(call.launch(function), GDN_SUCCESS) << message();
    return fakeCount("cuTensorMapEncodeTiled") - before;
  }
};
} // namespace

TEST_F(Scalars, MakeSizesAndReachKernels) {
  function.prepare();
  EXPECT_EQ(encodes(), 1);
  EXPECT_EQ(got.count, 137);
  EXPECT_EQ(got.number, -3);
  EXPECT_EQ(got.scale, 0.5f);
  int64_t shape[1] = {};
  EXPECT_EQ(gdnFunctionGetOutputShape(&function.desc, call.all, 4, 0, shape),
            GDN_SUCCESS)
      << message();
  EXPECT_EQ(shape[0], 7);
}

/// Sizes may be made of an integer, so another one is another call. A float is
/// a value like an address.
TEST_F(Scalars, KnownCalls) {
  function.prepare();
  EXPECT_EQ(encodes(), 1);
  EXPECT_EQ(encodes(), 0);
  call.all[3].value.f32 = 0.25f;
  EXPECT_EQ(encodes(), 0);
  EXPECT_EQ(got.scale, 0.25f);
  call.all[2].value.i32 = 11;
  EXPECT_EQ(encodes(), 1);
  EXPECT_EQ(got.number, 11);
  call.all[1].value.i64 = call.shapeY[0] = 9;
  EXPECT_EQ(encodes(), 1);
  EXPECT_EQ(got.count, 139);
  EXPECT_EQ(got.scale, 0.25f);
  call.all[1].value.i64 = call.shapeY[0] = 7;
  EXPECT_EQ(encodes(), 0);
  EXPECT_EQ(got.count, 137);
  EXPECT_EQ(got.launches, 6);
}

/// Nor do calls agree that differ in what sizes alone are made of, whatever the
/// first kernel takes.
TEST_F(Scalars, FirstKernelWithoutArguments) {
  function.first.num_args = function.first.num_params = 0;
  function.first.num_tensor_maps = 0;
  function.launches[0].operands = nullptr;
  function.launches[0].num_operands = 0;
  function.desc.num_rules = 0;
  function.prepare(0);
  EXPECT_EQ(call.launch(function), GDN_SUCCESS) << message();
  EXPECT_EQ(got.count, 137);
  call.all[1].value.i64 = 9;
  EXPECT_EQ(call.launch(function), GDN_SUCCESS) << message();
  EXPECT_EQ(got.count, 139);
}

TEST_F(Scalars, WrongCalls) {
  function.prepare();
  call.shapeY[0] = 8;
  EXPECT_EQ(call.launch(function), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "expected extent 0 of y to be 7, got 8");
  call.shapeY[0] = 7;
  call.all[1].kind = GDN_ARG_I32;
  EXPECT_EQ(call.launch(function), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "expected argument 1 (count) to be an i64, got an i32");
  call.all[1].kind = GDN_ARG_I64;
  call.all[1].value.i64 = -1;
  EXPECT_EQ(call.launch(function), GDN_ERROR_INVALID_ARGUMENT);
  call.all[1].value.i64 = INT64_MAX;
  EXPECT_EQ(call.launch(function), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "expected sizes of 'pool' that can be computed in 64 "
                       "bits, got 9223372036854775807 and 130");
  EXPECT_EQ(got.launches, 0);
}

TEST_F(Scalars, ContradictionsAreFound) {
  auto expect = [&](const char *text) {
    EXPECT_EQ(gdnFunctionPrepare(&function.desc, 0), GDN_ERROR_INVALID_KERNEL);
    EXPECT_EQ(message(), text);
  };
  for (int32_t arg : {-1, 0, 3, 4}) {
    function.steps[stepN1].left = arg;
    expect(("function 'pool': expected step 2 to name earlier ones, an extent "
            "or an integer, got kind 11, left " +
            std::to_string(arg) + ", right 0")
               .c_str());
  }
  function.steps[stepN1].left = 1;
  function.operands[2].index = 3;
  expect("function 'pool': expected launch 1 with a kernel, a grid of steps "
         "and an operand for each argument of the kernel, got 4 operands");
  function.operands[2].index = 2;
  function.results[0] = 1;
  expect("function 'pool': expected result 0 to name an array, got argument 1");
  function.results[0] = 4;
  function.desc.num_inputs = 3;
  expect("function 'pool': expected output 'scale' to be an array");
  function.desc.num_inputs = 4;
}

/// Of an array that is absent extents are 0, and no rule asks for others.
TEST_F(Scalars, AbsentArrays) {
  TestFunction pool;
  pool.args[2].flags = pool.secondArgs[1].flags = GDN_ARG_FLAG_OPTIONAL;
  pool.steps[stepChunk] = {GDN_INDEX_EXTENT, 2, 0, 0};
  pool.steps[stepChunks] = {GDN_INDEX_ADD, stepT, stepChunk, 0};
  TestCall given;
  auto count = [&](uint64_t &bytes) {
    return gdnFunctionGetWorkspaceBytes(&pool.desc, given.args, 3, &bytes);
  };
  uint64_t bytes = 0;
  EXPECT_EQ(count(bytes), GDN_SUCCESS) << message();
  // Of [T] in 16 bits and [T + N, H] in 32.
  EXPECT_EQ(bytes, 512u + 1792);
  given.shapeY[0] = 4;
  EXPECT_EQ(count(bytes), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "expected extent 0 of y to be 3, got 4");
  given.args[2].value.tensor = nullptr;
  EXPECT_EQ(count(bytes), GDN_SUCCESS) << message();
  EXPECT_EQ(bytes, 512u + 1792);
  given.shapeX[0] = 128;
  EXPECT_EQ(count(bytes), GDN_SUCCESS) << message();
  EXPECT_EQ(bytes, 256u + 1536);
  EXPECT_EQ(gdnFunctionCheck(&pool.desc, given.args, 3), GDN_SUCCESS)
      << message();
  pool.secondArgs[1].flags = 0;
  EXPECT_EQ(gdnFunctionCheck(&pool.desc, given.args, 3),
            GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "expected y, got none");
}
