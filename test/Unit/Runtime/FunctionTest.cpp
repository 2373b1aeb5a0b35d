//===- FunctionTest.cpp - Kernels in a row --------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestFunction.h"

#include <cstring>
#include <thread>

using Function = RuntimeTest;

template <typename T> static T at(const FakeLaunch &launch, size_t offset) {
  T value;
  memcpy(&value, launch.parameters + offset, sizeof(value));
  return value;
}

TEST_F(Function, WorkspaceAndOutputShape) {
  TestFunction function;
  TestCall call;
  uint64_t bytes = 0;
  // [130] bf16 and [3, 3] f32, each from a multiple of 256 on.
  ASSERT_EQ(gdnFunctionGetWorkspaceBytes(&function.desc, call.args, 3, &bytes),
            GDN_SUCCESS)
      << message();
  EXPECT_EQ(bytes, 512u + 256u);
  int64_t shape[1] = {0};
  ASSERT_EQ(gdnFunctionGetOutputShape(&function.desc, call.args, 2, 0, shape),
            GDN_SUCCESS)
      << message();
  EXPECT_EQ(shape[0], 3);
  EXPECT_EQ(gdnFunctionGetOutputShape(&function.desc, call.args, 2, 1, shape),
            GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "expected a place for the shape of one of 1 outputs, "
                       "got output 1");
  EXPECT_EQ(
      gdnFunctionGetOutputShape(&function.desc, call.args, 2, INT32_MAX, shape),
      GDN_ERROR_INVALID_ARGUMENT);
}

/// An extent that only an absent input has cannot be told.
TEST_F(Function, OutputShapeOfAnAbsentInput) {
  TestFunction function;
  TestCall call;
  // y has the symbol of cu_seqlens, and no rule.
  function.shapeY[0] = function.shapeCu[0];
  function.desc.num_rules = function.desc.num_steps = 0;
  function.desc.num_launches = function.desc.num_temporaries = 0;
  function.args[1].flags = GDN_ARG_FLAG_OPTIONAL;
  int64_t shape[1] = {0};
  ASSERT_EQ(gdnFunctionGetOutputShape(&function.desc, call.args, 2, 0, shape),
            GDN_SUCCESS)
      << message();
  EXPECT_EQ(shape[0], 4);
  call.args[1].value.tensor = nullptr;
  EXPECT_EQ(gdnFunctionGetOutputShape(&function.desc, call.args, 2, 0, shape),
            GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(),
            "expected inputs that give extent 0 of y a size, got none");
}

TEST_F(Function, LaunchesInOrder) {
  TestFunction function;
  prepareBoth(function);
  TestCall call;
  ASSERT_EQ(call.launch(function), GDN_SUCCESS) << message();
  EXPECT_EQ(fakeCount("cuLaunchKernelEx"), 2);
  const FakeLaunch &last = *fakeLastLaunch();
  EXPECT_STREQ(reinterpret_cast<const char *>(last.function), "second");
  // 3 chunks of 64 tokens times 3 heads.
  EXPECT_EQ(last.config.grid[0], 9u);
  EXPECT_EQ(last.config.grid[1], 1u);
  EXPECT_EQ(last.config.stream, fakeStream(0));
  EXPECT_EQ(fakeCount("cuMemAlloc"), 0);
  EXPECT_EQ(fakeCount("cuCtxSynchronize"), 0);
}

TEST_F(Function, TemporariesLieInTheWorkspace) {
  TestFunction function;
  function.desc.launches = function.launches + 1;
  function.desc.num_launches = 1;
  fakeSetParams(poolParams, 4);
  ASSERT_EQ(gdnFunctionPrepare(&function.desc, 0), GDN_SUCCESS) << message();
  TestCall call;
  ASSERT_EQ(call.launch(function), GDN_SUCCESS) << message();
  const FakeLaunch &last = *fakeLastLaunch();
  EXPECT_EQ(at<char *>(last, 0), static_cast<char *>(call.workspace) + 512);
  EXPECT_EQ(at<int64_t>(last, 8), 3);
  EXPECT_EQ(at<void *>(last, 16), call.y.data);
  EXPECT_EQ(at<int32_t>(last, 24), 130);
}

/// With a device, a default stream needs no current context.
TEST_F(Function, LaunchOnADevice) {
  TestFunction function;
  function.desc.launches = function.launches + 1;
  function.desc.num_launches = 1;
  fakeSetParams(poolParams, 4);
  ASSERT_EQ(gdnFunctionPrepare(&function.desc, 0), GDN_SUCCESS) << message();
  ASSERT_EQ(gdnFunctionPrepare(&function.desc, 1), GDN_SUCCESS) << message();
  TestCall call;
  auto launch = [&](int device, void *stream) {
    call.x.data = fakeAddress(device, 0x1000);
    call.cu.data = fakeAddress(device, 0x8000);
    call.y.data = fakeAddress(device, 0x9000);
    call.workspace = fakeAddress(device, 0x10000);
    return gdnFunctionLaunchOn(&function.desc, device, call.args, 3,
                               call.workspace, 4096, stream);
  };
  ASSERT_EQ(launch(1, nullptr), GDN_SUCCESS) << message();
  EXPECT_EQ(fakeLastLaunch()->device, 1);
  EXPECT_EQ(fakeCurrentDevice(), -1) << "the launch left its context";
  ASSERT_EQ(gdnDeviceMakeCurrent(0), GDN_SUCCESS);
  ASSERT_EQ(launch(1, nullptr), GDN_SUCCESS) << message();
  EXPECT_EQ(fakeLastLaunch()->device, 1);
  EXPECT_EQ(fakeCurrentDevice(), 0) << "the launch changed the current device";
  int pushes = fakeCount("cuCtxPushCurrent");
  ASSERT_EQ(launch(0, nullptr), GDN_SUCCESS) << message();
  EXPECT_EQ(fakeCount("cuCtxPushCurrent"), pushes);
  ASSERT_EQ(launch(1, fakeStream(1)), GDN_SUCCESS) << message();
  EXPECT_EQ(fakeLastLaunch()->device, 1);
  EXPECT_EQ(launch(0, fakeStream(1)), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "expected a stream of device 0, got one of device 1");
  EXPECT_EQ(launch(2, nullptr), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "expected a device from 0 to 1, got 2");
}

TEST_F(Function, WrongCallsReachNoDriver) {
  TestFunction function;
  TestCall call;
  EXPECT_EQ(call.launch(function), GDN_ERROR_NOT_PREPARED);
  EXPECT_EQ(message(), "expected function 'pool' to be prepared, got no "
                       "gdnFunctionPrepare for it");
  prepareBoth(function);
  EXPECT_EQ(call.launch(function, 767), GDN_ERROR_WORKSPACE_TOO_SMALL);
  EXPECT_EQ(message(), "expected a workspace of 768 bytes for 'pool', got 767");
  call.shapeY[0] = 2;
  EXPECT_EQ(call.launch(function), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "expected extent 0 of y to be 3, got 2");
  call.shapeY[0] = 3;
  // What only the last kernel asks for is seen before the first one runs.
  call.y.data = fakeAddress(0, 0x9004);
  EXPECT_EQ(call.launch(function), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message().substr(0, 38), "expected y to be aligned to 16 bytes, ");
  call.y.data = fakeAddress(0, 0x9000);
  call.shapeX[0] = int64_t(1) << 40;
  EXPECT_EQ(call.launch(function), GDN_ERROR_WORKSPACE_TOO_SMALL);
  EXPECT_EQ(gdnFunctionLaunch(&function.desc, call.args, 2, nullptr, 0,
                              fakeStream(0)),
            GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "expected 3 arguments of 'pool', got 2");
  EXPECT_EQ(fakeCount("cuLaunchKernelEx"), 0);
}

/// A launch on a device that only some kernels are ready on does not begin.
TEST_F(Function, NoKernelRunsBeforeAllAreReady) {
  TestFunction function;
  prepareBoth(function);
  fakeSetParams(poolParams, 1);
  GdnKernel *first;
  ASSERT_EQ(gdnKernelLoad(&function.first, &first), GDN_SUCCESS);
  ASSERT_EQ(gdnKernelPrepare(first, 1), GDN_SUCCESS) << message();
  ASSERT_EQ(gdnKernelUnload(first), GDN_SUCCESS);
  fakeSetParams(poolParams, 0);
  TestCall call;
  const char *text = "expected kernel 'second' to be prepared on device 1, got "
                     "no gdnKernelPrepare for it";
  EXPECT_EQ(gdnFunctionLaunchOn(&function.desc, 1, call.args, 3, call.workspace,
                                4096, nullptr),
            GDN_ERROR_NOT_PREPARED);
  EXPECT_EQ(message(), text);
  EXPECT_EQ(gdnFunctionLaunch(&function.desc, call.args, 3, call.workspace,
                              4096, fakeStream(1)),
            GDN_ERROR_NOT_PREPARED);
  EXPECT_EQ(message(), text);
  EXPECT_EQ(fakeCurrentDevice(), -1) << "the launch left its context";
  EXPECT_EQ(fakeCount("cuLaunchKernelEx"), 0);
  EXPECT_EQ(call.launch(function), GDN_SUCCESS) << message();
}

/// Nothing but a kernel in its place shows that a description was checked.
TEST_F(Function, DescriptionsThatNobodyChecked) {
  TestFunction function;
  TestCall call;
  function.desc.struct_size = 8;
  EXPECT_EQ(call.launch(function), GDN_ERROR_VERSION);
  function.desc.struct_size = sizeof(function.desc);
  function.desc.kernels = nullptr;
  EXPECT_EQ(call.launch(function), GDN_ERROR_INVALID_KERNEL);
  EXPECT_EQ(message(), "function 'pool': expected 0 to 64 places for kernels, "
                       "got 0");
  function.desc.kernels = function.kernels;
  function.desc.num_launches = 0;
  EXPECT_EQ(call.launch(function), GDN_SUCCESS) << message();
  function.desc.num_symbols = 1 << 20;
  EXPECT_EQ(call.launch(function), GDN_ERROR_INVALID_KERNEL);
  function.desc.num_symbols = 4;
  function.desc.num_launches = 2;
}

/// The checks of a launch, without one and without preparation.
TEST_F(Function, Check) {
  TestFunction function;
  TestCall call;
  auto check = [&] { return gdnFunctionCheck(&function.desc, call.args, 3); };
  EXPECT_EQ(check(), GDN_SUCCESS) << message();
  call.y.data = fakeAddress(0, 0x9004);
  EXPECT_EQ(check(), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message().substr(0, 38), "expected y to be aligned to 16 bytes, ");
  call.y.data = fakeAddress(0, 0x9000);
  call.shapeX[1] = int64_t(1) << 31;
  EXPECT_EQ(check(), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "expected a grid of 0 to 2^31 - 1 blocks for kernel "
                       "'first', got 3 x 2147483648 x 1");
  call.shapeX[1] = 3;
  function.second.version = 0;
  EXPECT_EQ(check(), GDN_ERROR_VERSION);
  function.second.version = GDN_RUNTIME_VERSION;
  EXPECT_EQ(fakeCount("cuLibraryLoadData"), 0);
}

TEST_F(Function, ScalarsThatDoNotFitAreRefused) {
  TestFunction function;
  prepareBoth(function);
  TestCall call;
  call.shapeX[0] = int64_t(1) << 32;
  EXPECT_EQ(call.launch(function, size_t(1) << 40), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "expected tokens of kernel 'second' to fit 32 bits, got "
                       "4294967296");
  EXPECT_EQ(fakeCount("cuLaunchKernelEx"), 0);
}

TEST_F(Function, ContradictionsAreFound) {
  auto expect = [&](TestFunction &function, const char *text) {
    EXPECT_EQ(gdnFunctionPrepare(&function.desc, 0), GDN_ERROR_INVALID_KERNEL);
    EXPECT_EQ(message(), text);
  };
  {
    TestFunction function;
    function.steps[stepChunks].right = stepChunks;
    expect(function, "function 'pool': expected step 6 to name earlier ones, "
                     "an extent or an integer, got kind 7, left 0, right 6");
    function.steps[stepChunks].right = stepChunk;
    function.rule.dim = 1;
    expect(function, "function 'pool': expected rule 0 to name an extent and a "
                     "step, got argument 2, dimension 1, step 4");
    function.rule.dim = 0;
    function.shapeChunks[0] = 7;
    expect(function, "function 'pool': expected temporary 1 with a dtype and a "
                     "shape of steps, got dtype 3, rank 2");
    function.shapeChunks[0] = stepChunks;
    function.secondOperands[2] = {GDN_OPERAND_ARGUMENT, 0};
    expect(function, "function 'pool': expected launch 1 with a kernel, a grid "
                     "of steps and an operand for each argument of the kernel, "
                     "got 3 operands");
    function.secondOperands[2] = {GDN_OPERAND_INDEX, stepT};
    function.results[0] = 3;
    expect(function, "function 'pool': expected result 0 to name an array, got "
                     "argument 3");
    function.results[0] = 2;
    function.desc.num_steps = 1000;
    expect(function, "function 'pool': expected 0 to 256 steps, got 1000");
    function.desc.num_steps = 7;
  }
  TestFunction function;
  function.desc.version = 0;
  EXPECT_EQ(gdnFunctionPrepare(&function.desc, 0), GDN_ERROR_VERSION);
  function.desc.version = GDN_RUNTIME_VERSION;
  EXPECT_EQ(gdnFunctionPrepare(nullptr, 0), GDN_ERROR_INVALID_ARGUMENT);
}

TEST_F(Function, PrepareFromManyThreadsLoadsOnce) {
  TestFunction function;
  function.desc.launches = function.launches + 1;
  function.desc.num_launches = 1;
  fakeSetParams(poolParams, 4);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back(
        [&] { EXPECT_EQ(gdnFunctionPrepare(&function.desc, 0), GDN_SUCCESS); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(fakeCount("cuLibraryLoadData"), 1);
  EXPECT_EQ(gdnFunctionUnload(&function.desc), GDN_SUCCESS);
  EXPECT_EQ(fakeCount("cuLibraryUnload"), 1);
  EXPECT_EQ(function.kernels[0], nullptr);
}

TEST(Events, Measure) {
  fakeReset();
  void *start = nullptr, *end = nullptr;
  ASSERT_EQ(gdnEventCreate(0, &start), GDN_SUCCESS);
  ASSERT_EQ(gdnEventCreate(0, &end), GDN_SUCCESS);
  EXPECT_EQ(gdnEventRecord(0, start, nullptr), GDN_SUCCESS);
  EXPECT_EQ(gdnEventRecord(0, end, nullptr), GDN_SUCCESS);
  double seconds = 0;
  EXPECT_EQ(gdnEventGetSeconds(0, start, end, &seconds), GDN_SUCCESS);
  EXPECT_DOUBLE_EQ(seconds, 0.25e-3);
  EXPECT_EQ(fakeCount("cuEventSynchronize"), 1);
  EXPECT_EQ(gdnEventDestroy(0, start), GDN_SUCCESS);
  EXPECT_EQ(gdnEventDestroy(0, nullptr), GDN_SUCCESS);
  EXPECT_EQ(fakeCount("cuEventDestroy"), 1);
  fakeFail("cuEventRecord", 719);
  EXPECT_EQ(gdnEventRecord(0, end, nullptr), GDN_ERROR_DRIVER);
  EXPECT_EQ(std::string(gdnGetLastErrorMessage()),
            "recording an event on device 0 failed: CUDA_ERROR_LAUNCH_FAILED "
            "(719), unspecified launch failure");
  fakeReset();
}
