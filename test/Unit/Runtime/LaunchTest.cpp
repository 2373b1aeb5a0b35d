//===- LaunchTest.cpp - What a launch hands to the driver -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestKernel.h"

#include <cstdlib>
#include <cstring>
#include <thread>

using Launch = RuntimeTest;

/// Reads a value out of the parameters.
template <typename T> static T at(const FakeLaunch &launch, size_t offset) {
  T value;
  memcpy(&value, launch.parameters + offset, sizeof(value));
  return value;
}

TEST_F(Launch, ParametersByteForByte) {
  TestDesc test;
  GdnKernel *kernel = prepare(test);
  TestArgs args;
  ASSERT_EQ(args.launch(kernel, fakeStream(0)), GDN_SUCCESS) << message();
  const FakeLaunch &launch = *fakeLastLaunch();
  for (int i = 0; i < 128; ++i)
    ASSERT_EQ(launch.parameters[48 + i], 0xab) << "tensor map, byte " << i;
  EXPECT_EQ(at<void *>(launch, 176), args.out.data);
  EXPECT_EQ(at<int32_t>(launch, 184), 100);
  EXPECT_EQ(at<int64_t>(launch, 192), 1024);
  EXPECT_EQ(at<float>(launch, 200), 0.5f);
  EXPECT_EQ(at<int32_t>(launch, 204), 7);
  EXPECT_EQ(at<int64_t>(launch, 208), int64_t(1) << 40);
  EXPECT_EQ(at<void *>(launch, 216), args.workspace);
}

TEST_F(Launch, Configuration) {
  TestDesc test;
  GdnKernel *kernel = prepare(test);
  TestArgs args;
  ASSERT_EQ(args.launch(kernel, fakeStream(0)), GDN_SUCCESS) << message();
  const FakeLaunch &launch = *fakeLastLaunch();
  EXPECT_EQ(launch.config.grid[0], 6u);
  EXPECT_EQ(launch.config.grid[1], 1u);
  EXPECT_EQ(launch.config.grid[2], 1u);
  EXPECT_EQ(launch.config.block[0], 256u);
  EXPECT_EQ(launch.config.block[1], 1u);
  EXPECT_EQ(launch.config.block[2], 1u);
  EXPECT_EQ(launch.config.sharedBytes, 200000u);
  EXPECT_EQ(launch.config.stream, fakeStream(0));
  EXPECT_EQ(launch.cluster[0], 2u);
  EXPECT_EQ(launch.cluster[1], 1u);
  EXPECT_EQ(launch.cluster[2], 1u);
  EXPECT_FALSE(launch.follows);
  EXPECT_EQ(fakeCount("cuCtxSynchronize"), 0);
  EXPECT_EQ(fakeCount("cuMemAlloc"), 0);

  TestDesc follower;
  follower.desc.follows = 1;
  ASSERT_EQ(args.launch(prepare(follower), fakeStream(0)), GDN_SUCCESS)
      << message();
  EXPECT_TRUE(fakeLastLaunch()->follows);
  EXPECT_EQ(fakeLastLaunch()->cluster[0], 2u);
}

TEST_F(Launch, TensorMap) {
  TestDesc test;
  GdnKernel *kernel = prepare(test);
  TestArgs args;
  ASSERT_EQ(args.launch(kernel, fakeStream(0)), GDN_SUCCESS) << message();
  const FakeMap &map = *fakeLastMap();
  EXPECT_EQ(map.type, 9) << "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16";
  EXPECT_EQ(map.rank, 4u);
  EXPECT_EQ(map.address, args.q.data);
  const uint64_t extents[] = {64, 100, 2, 3};
  const uint64_t strides[] = {2048, 128, 256};
  const uint32_t box[] = {64, 32, 2, 1};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(map.extents[i], extents[i]);
    EXPECT_EQ(map.box[i], box[i]);
    EXPECT_EQ(map.elementStrides[i], 1u);
  }
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(map.strides[i], strides[i]);
  EXPECT_EQ(map.interleave, 0);
  EXPECT_EQ(map.swizzle, 3) << "CU_TENSOR_MAP_SWIZZLE_128B";
  EXPECT_EQ(map.promotion, 3) << "CU_TENSOR_MAP_L2_PROMOTION_L2_256B";
  EXPECT_EQ(map.fill, 0);
}

/// Rows that end anywhere: 2^30 steps back wrap around 2^64 bytes.
TEST_F(Launch, TensorMapThatIsCut) {
  TestDesc test;
  test.dims[0] = {2, 64, 0, 1};
  test.dims[1] = {0, 32, int64_t(1) << 30, 1};
  test.dims[2] = {0, 1, 0x7fff0000, 1};
  test.dims[3] = {0, 1, 0x7fff0000, GDN_STEP_BACK};
  GdnKernel *kernel = prepare(test);
  TestArgs args;
  ASSERT_EQ(args.launch(kernel, fakeStream(0)), GDN_SUCCESS) << message();
  const FakeMap &map = *fakeLastMap();
  EXPECT_EQ(map.extents[1], uint64_t(1) << 30);
  EXPECT_EQ(map.strides[0], 2048u);
  EXPECT_EQ(map.strides[1], 2048u);
  EXPECT_EQ(map.strides[2], (uint64_t(1) << 35) - 2048);
  EXPECT_EQ((map.strides[2] + map.strides[1]) << 30, 0u) << "modulo 2^64";
}

/// An absent array gives zeros; an empty one keeps its extents, and no map is
/// made of it because the driver takes none without elements.
TEST_F(Launch, AbsentAndEmptyArrays) {
  TestDesc test;
  GdnKernel *kernel = prepare(test);
  TestArgs args;
  args.list[1].value.tensor = nullptr;
  args.shapeQ[0] = 0;
  args.q.data = nullptr;
  ASSERT_EQ(args.launch(kernel, fakeStream(0)), GDN_SUCCESS) << message();
  EXPECT_EQ(fakeCount("cuTensorMapEncodeTiled"), 0);
  const FakeLaunch &launch = *fakeLastLaunch();
  for (int i = 48; i < 188; ++i)
    ASSERT_EQ(launch.parameters[i], 0) << "byte " << i;
  EXPECT_EQ(at<int64_t>(launch, 192), 1024);
}

/// The stream says which device it is, whatever is current.
TEST_F(Launch, FollowsTheStream) {
  TestDesc test;
  GdnKernel *kernel = prepare(test);
  ASSERT_EQ(gdnKernelPrepare(kernel, 1), GDN_SUCCESS);
  ASSERT_EQ(gdnDeviceMakeCurrent(0), GDN_SUCCESS);
  TestArgs args(1);
  ASSERT_EQ(args.launch(kernel, fakeStream(1)), GDN_SUCCESS) << message();
  EXPECT_EQ(fakeLastLaunch()->device, 1);
  EXPECT_EQ(fakeCurrentDevice(), 0) << "the launch changed the current device";
}

TEST_F(Launch, DefaultStreamIsOfTheCurrentContext) {
  TestDesc test;
  GdnKernel *kernel = prepare(test);
  TestArgs args;
  EXPECT_EQ(args.launch(kernel, nullptr), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "expected a current CUDA context or a stream that "
                       "names one, got neither");
  ASSERT_EQ(gdnDeviceMakeCurrent(0), GDN_SUCCESS);
  int pushes = fakeCount("cuCtxPushCurrent");
  EXPECT_EQ(args.launch(kernel, nullptr), GDN_SUCCESS) << message();
  EXPECT_EQ(fakeCount("cuCtxPushCurrent"), pushes);
}

/// A launch never loads: an unprepared device is an error.
TEST_F(Launch, RefusesUnpreparedDevices) {
  TestDesc test;
  GdnKernel *kernel = prepare(test);
  int loads = fakeCount("cuFuncLoad");
  EXPECT_EQ(TestArgs(1).launch(kernel, fakeStream(1)), GDN_ERROR_NOT_PREPARED);
  EXPECT_EQ(message(), "expected kernel 'attend' to be prepared on device 1, "
                       "got no gdnKernelPrepare for it");
  EXPECT_EQ(fakeCount("cuFuncLoad"), loads);
}

TEST_F(Launch, Workspace) {
  TestDesc test;
  GdnKernel *kernel = prepare(test);
  TestArgs args;
  auto launch = [&](void *workspace, size_t bytes) {
    return gdnKernelLaunch(kernel, args.list, 5, workspace, bytes, nullptr,
                           fakeStream(0));
  };
  EXPECT_EQ(launch(args.workspace, 99), GDN_ERROR_WORKSPACE_TOO_SMALL);
  EXPECT_EQ(message(),
            "expected a workspace of 100 bytes for kernel 'attend', got 99");
  EXPECT_EQ(launch(nullptr, 100), GDN_ERROR_WORKSPACE_TOO_SMALL);
  EXPECT_EQ(launch(fakeAddress(0, 128), 100), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(launch(args.workspace, 100), GDN_SUCCESS) << message();
}

TEST_F(Launch, Grid) {
  TestDesc test;
  GdnKernel *kernel = prepare(test);
  TestArgs args;
  GdnGrid grid = {3, 1, 1};
  EXPECT_EQ(args.launch(kernel, fakeStream(0), &grid),
            GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(),
            "expected a grid in clusters of 2 blocks along x, got 3");
  grid = {4, 0, 1};
  EXPECT_EQ(args.launch(kernel, fakeStream(0), &grid), GDN_SUCCESS);
  EXPECT_EQ(fakeCount("cuLaunchKernelEx"), 0) << "no blocks, no launch";
  grid = {4, 2, 1};
  EXPECT_EQ(args.launch(kernel, fakeStream(0), &grid), GDN_SUCCESS);
  EXPECT_EQ(fakeLastLaunch()->config.grid[1], 2u);

  TestDesc persistent;
  persistent.desc.resident_blocks = 1;
  GdnKernel *turns = prepare(persistent);
  grid = {4096, 1, 1};
  EXPECT_EQ(args.launch(turns, fakeStream(0), &grid), GDN_SUCCESS);
  EXPECT_EQ(fakeLastLaunch()->config.grid[0], 132u)
      << "one block a multiprocessor does it all";
  grid = {6, 1, 1};
  EXPECT_EQ(args.launch(turns, fakeStream(0), &grid), GDN_SUCCESS);
  EXPECT_EQ(fakeLastLaunch()->config.grid[0], 6u);

  TestDesc notConfigured;
  notConfigured.desc.configure = nullptr;
  EXPECT_EQ(args.launch(prepare(notConfigured), fakeStream(0)),
            GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "expected a grid for kernel 'attend', which has no "
                       "plan, got null");
}

TEST_F(Launch, DriverFailures) {
  TestDesc test;
  GdnKernel *kernel = prepare(test);
  TestArgs args;
  fakeFail("cuTensorMapEncodeTiled", 1);
  EXPECT_EQ(args.launch(kernel, fakeStream(0)), GDN_ERROR_DRIVER);
  EXPECT_EQ(message().substr(0, 38), "encoding the tensor map of q failed: C");
  fakeFail("cuTensorMapEncodeTiled", 0);
  fakeFail("cuLaunchKernelEx", 719);
  EXPECT_EQ(args.launch(kernel, fakeStream(0)), GDN_ERROR_DRIVER);
  EXPECT_EQ(message(),
            "launching kernel 'attend' (grid 6 x 1 x 1) failed: "
            "CUDA_ERROR_LAUNCH_FAILED (719), unspecified launch failure");
  EXPECT_EQ(fakeCurrentDevice(), -1) << "a failed launch left its context";
  EXPECT_EQ(
      gdnKernelLaunch(nullptr, args.list, 5, nullptr, 0, nullptr, nullptr),
      GDN_ERROR_INVALID_ARGUMENT);
}

/// Arguments like earlier ones are compared, and what differs is written.
TEST_F(Launch, KnownArguments) {
  TestDesc test;
  GdnKernel *kernel = prepare(test);
  TestArgs args;
  ASSERT_EQ(args.launch(kernel, fakeStream(0)), GDN_SUCCESS) << message();
  args.list[3].value.i32 = 8;
  args.out.data = fakeAddress(0, 0x9000);
  args.workspace = fakeAddress(0, 0x20000);
  ASSERT_EQ(args.launch(kernel, fakeStream(0)), GDN_SUCCESS) << message();
  EXPECT_EQ(fakeCount("cuTensorMapEncodeTiled"), 1);
  const FakeLaunch &launch = *fakeLastLaunch();
  EXPECT_EQ(launch.parameters[48], 0xab) << "the first launch's tensor map";
  EXPECT_EQ(at<void *>(launch, 176), args.out.data);
  EXPECT_EQ(at<int32_t>(launch, 184), 100);
  EXPECT_EQ(at<int32_t>(launch, 204), 8);
  EXPECT_EQ(at<void *>(launch, 216), args.workspace);

  args.q.data = fakeAddress(0, 0x2000);
  ASSERT_EQ(args.launch(kernel, fakeStream(0)), GDN_SUCCESS) << message();
  EXPECT_EQ(fakeCount("cuTensorMapEncodeTiled"), 1);
  EXPECT_EQ(fakeLastMap()->address, args.q.data);
  EXPECT_EQ(launch.parameters[48], 0xcd) << "a tensor map that was moved";
  // A driver that cannot move one encodes another.
  fakeFail("cuTensorMapReplaceAddress", 1);
  args.q.data = fakeAddress(0, 0x3000);
  ASSERT_EQ(args.launch(kernel, fakeStream(0)), GDN_SUCCESS) << message();
  EXPECT_EQ(fakeCount("cuTensorMapEncodeTiled"), 2);
  EXPECT_EQ(fakeLastMap()->address, args.q.data);
  EXPECT_EQ(launch.parameters[48], 0xab);
  // A failure leaves nothing behind that a launch would take for known.
  fakeFail("cuTensorMapEncodeTiled", 1);
  args.q.data = fakeAddress(0, 0x4000);
  EXPECT_EQ(args.launch(kernel, fakeStream(0)), GDN_ERROR_DRIVER);
  fakeFail("cuTensorMapEncodeTiled", 0);
  ASSERT_EQ(args.launch(kernel, fakeStream(0)), GDN_SUCCESS) << message();
  EXPECT_EQ(fakeLastMap()->address, args.q.data);
}

/// All parameters that are made of one tensor map move with its array.
TEST_F(Launch, TensorMapOfTwoParameters) {
  TestDesc test;
  test.params[1] = test.params[0];
  static constexpr FakeParam places[] = {{64, 128}, {192, 128}, {320, 4},
                                         {328, 8},  {336, 4},   {340, 4},
                                         {344, 8},  {352, 8}};
  fakeSetParams(places, 8);
  GdnKernel *kernel = prepare(test);
  TestArgs args;
  ASSERT_EQ(args.launch(kernel, fakeStream(0)), GDN_SUCCESS) << message();
  args.q.data = fakeAddress(0, 0x2000);
  ASSERT_EQ(args.launch(kernel, fakeStream(0)), GDN_SUCCESS) << message();
  EXPECT_EQ(fakeLastLaunch()->parameters[64], 0xcd) << "not moved";
  EXPECT_EQ(fakeLastLaunch()->parameters[192], 0xcd) << "not moved";
}

/// Each thing that the parameters follow from makes arguments unknown.
TEST_F(Launch, UnknownArguments) {
  TestDesc test;
  GdnKernel *kernel = prepare(test);
  TestArgs args;
  auto encodes = [&] {
    int before = fakeCount("cuTensorMapEncodeTiled");
    EXPECT_EQ(args.launch(kernel, fakeStream(0)), GDN_SUCCESS) << message();
    return fakeCount("cuTensorMapEncodeTiled") - before;
  };
  auto refuses = [&](const char *text) {
    EXPECT_EQ(args.launch(kernel, fakeStream(0)), GDN_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(message().find(text), std::string::npos) << message();
  };
  EXPECT_EQ(encodes(), 1);
  args.stridesQ[0] = 2048;
  EXPECT_EQ(encodes(), 1);
  EXPECT_EQ(fakeLastMap()->strides[0], 4096u);
  args.shapeQ[0] = args.shapeOut[0] = 64;
  EXPECT_EQ(encodes(), 1);
  EXPECT_EQ(fakeLastMap()->extents[1], 64u);
  EXPECT_EQ(at<int32_t>(*fakeLastLaunch(), 184), 64);
  args.list[1].value.tensor = nullptr;
  EXPECT_EQ(encodes(), 1);
  EXPECT_EQ(at<void *>(*fakeLastLaunch(), 176), nullptr);
  EXPECT_EQ(encodes(), 0);
  // A few are kept, in the order in which they came.
  args.list[1].value.tensor = &args.out;
  EXPECT_EQ(encodes(), 0);
  EXPECT_EQ(at<void *>(*fakeLastLaunch(), 176), args.out.data);

  args.q.data = fakeAddress(0, 0x1008);
  refuses("expected q to be aligned to 16 bytes");
  args.q.data = nullptr;
  refuses("expected q to have data");
  args.q.data = fakeAddress(0, 0x1000);
  args.out.data = fakeAddress(0, 0x8004);
  refuses("expected out to be aligned to 8 bytes");
  args.out.data = fakeAddress(0, 0x8000);
  args.shapeOut[0] = 65;
  refuses("expected out of shape [T=64, H=3], got [65, 3]");
  args.shapeOut[0] = 64;
  args.q.dtype = GDN_DTYPE_F16;
  refuses("expected q of type bf16, got f16");
  args.q.dtype = GDN_DTYPE_BF16;
  args.q.rank = 2;
  refuses("expected q of shape [T, H, 128], got [64, 3]");
  args.q.rank = 3;
  args.list[3].kind = GDN_ARG_I64;
  refuses("expected argument 3 (n) to be an i32, got an i64");
  args.list[3].kind = GDN_ARG_I32;
  args.list[3].value.i32 = -1;
  refuses("expected n >= 0, got less");
  args.list[3].value.i32 = 7;
  EXPECT_EQ(encodes(), 0);
}

/// Messages belong to their thread.
TEST_F(Launch, ThreadsLaunchAtOnce) {
  TestDesc test;
  GdnKernel *kernel = prepare(test);
  ASSERT_EQ(gdnKernelPrepare(kernel, 1), GDN_SUCCESS);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([kernel, device = i % 2] {
      TestArgs args(device);
      for (int round = 0; round < 200; ++round) {
        args.list[3].value.i32 = round;
        ASSERT_EQ(args.launch(kernel, fakeStream(device)), GDN_SUCCESS);
        ASSERT_STREQ(gdnGetLastErrorMessage(), "");
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(fakeCount("cuLaunchKernelEx"), 1600);
}
