//===- KnownCallsTest.cpp - Calls like earlier ones -----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestKnownCalls.h"

#include <thread>

TEST_F(Known, SameShapesAtOtherAddresses) {
  EXPECT_EQ(encodes(), 2);
  EXPECT_EQ(encodes(), 0);
  EXPECT_EQ(fakeCount("cuTensorMapReplaceAddress"), 0);
  call.x.data = fakeAddress(0, 0x2000);
  EXPECT_EQ(encodes(), 0);
  EXPECT_EQ(fakeCount("cuTensorMapReplaceAddress"), 1);
  EXPECT_EQ(fakeLastMap()->address, call.x.data);
  call.workspace = fakeAddress(0, 0x20000);
  EXPECT_EQ(encodes(), 0);
  EXPECT_EQ(fakeCount("cuTensorMapReplaceAddress"), 2);
  EXPECT_EQ(fakeLastMap()->address, fakeAddress(0, 0x20000 + 512));
  call.y.data = fakeAddress(0, 0xa000);
  EXPECT_EQ(encodes(), 0);
  EXPECT_EQ(fakeCount("cuTensorMapReplaceAddress"), 2);
  EXPECT_EQ(seen.first, 5);
  EXPECT_EQ(seen.second, 5);
}

TEST_F(Known, AnotherShapeInBetween) {
  EXPECT_EQ(encodes(), 2);
  call.shapeX[0] = 1000;
  EXPECT_EQ(encodes(), 2);
  EXPECT_EQ(fakeLastLaunch()->config.grid[0], 16u * 4);
  call.shapeX[0] = 130;
  EXPECT_EQ(encodes(), 0);
  EXPECT_EQ(fakeLastLaunch()->config.grid[0], 3u * 4);
  // A stride that nobody gave is another key than the same one given.
  int64_t strides[] = {4, 1};
  call.x.strides = strides;
  EXPECT_EQ(encodes(), 2);
  strides[0] = 8;
  EXPECT_EQ(encodes(), 2);
  // All arrays count, not only the first one.
  int64_t apart[] = {1};
  call.y.strides = apart;
  EXPECT_EQ(encodes(), 2);
  apart[0] = 2;
  EXPECT_EQ(encodes(), 2);
  EXPECT_EQ(encodes(), 0);
}

TEST_F(Known, MoreShapesThanKeys) {
  for (int round = 0; round < 2; ++round)
    for (int64_t tokens = 1; tokens <= 5; ++tokens) {
      call.shapeX[0] = tokens * 100;
      EXPECT_EQ(encodes(), 2);
    }
  for (int64_t tokens = 2; tokens <= 5; ++tokens) {
    call.shapeX[0] = tokens * 100;
    EXPECT_EQ(encodes(), 0);
  }
}

/// Two arguments may be one array in one call and two in the next.
TEST_F(Known, ArraysInOnePlace) {
  EXPECT_EQ(encodes(), 2);
  call.y.data = call.x.data;
  EXPECT_EQ(encodes(), 0);
  EXPECT_EQ(seen.y, seen.x);
  call.y.data = fakeAddress(0, 0x9000);
  EXPECT_EQ(encodes(), 0);
  call.x.data = call.y.data;
  EXPECT_EQ(encodes(), 0);
}

TEST_F(Known, WrongCallsAreRefusedWithTheSameText) {
  EXPECT_EQ(encodes(), 2);
  call.y.data = fakeAddress(0, 0x9004);
  refuses("expected y to be aligned to 16 bytes, got address");
  call.y.data = nullptr;
  refuses("expected y to have data, got a null pointer");
  call.y.data = fakeAddress(0, 0x9000);
  // The copy engine asks for more than the elements of x.
  call.x.data = fakeAddress(0, 0x1008);
  refuses("expected x to be aligned to 16 bytes, got address");
  call.x.data = fakeAddress(1, 0x1000);
  refuses("expected x on device 0, got device 1");
  call.x.data = fakeAddress(0, 0x1000);
  call.x.dtype = GDN_DTYPE_BF16;
  refuses("expected x of type f32, got bf16");
  call.x.dtype = GDN_DTYPE_F32;
  call.x.rank = 1;
  refuses("expected x of shape [T, H], got [130]");
  call.x.rank = 2;
  call.shapeY[0] = 2;
  refuses("expected extent 0 of y to be 4, got 2");
  call.shapeY[0] = 4;
  call.args[1].value.tensor = nullptr;
  refuses("expected cu_seqlens, got none");
  call.args[1].value.tensor = &call.cu;
  call.args[2].kind = GDN_ARG_I64;
  refuses("expected argument 2 (y) to be a tensor, got an i64");
  call.args[2].kind = GDN_ARG_TENSOR;
  void *workspace = call.workspace;
  call.workspace = fakeAddress(0, 0x10080);
  refuses("expected a workspace aligned to 256 bytes, got address");
  call.workspace = nullptr;
  refuses("expected a workspace of 768 bytes for 'pool', got 0");
  call.workspace = workspace;
  EXPECT_EQ(call.launch(function, 767), GDN_ERROR_WORKSPACE_TOO_SMALL);
  EXPECT_EQ(message(), "expected a workspace of 768 bytes for 'pool', got 767");
  // None of these has taken a place.
  EXPECT_EQ(encodes(), 0);
}

/// The functions that launch nothing say the same of known calls.
TEST_F(Known, ChecksAndWorkspaces) {
  uint64_t bytes = 0;
  auto check = [&] { return gdnFunctionCheck(&function.desc, call.args, 3); };
  auto count = [&] {
    return gdnFunctionGetWorkspaceBytes(&function.desc, call.args, 3, &bytes);
  };
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(check(), GDN_SUCCESS) << message();
    EXPECT_EQ(count(), GDN_SUCCESS) << message();
    EXPECT_EQ(bytes, 768u);
    call.y.data = fakeAddress(0, 0x9004);
    EXPECT_EQ(check(), GDN_ERROR_INVALID_ARGUMENT);
    // The workspace does not depend on it.
    EXPECT_EQ(count(), GDN_SUCCESS) << message();
    call.y.data = fakeAddress(0, 0x9000);
    call.shapeX[0] = 1000;
    EXPECT_EQ(count(), GDN_SUCCESS) << message();
    EXPECT_EQ(bytes, 2048u + 256u);
    call.shapeX[0] = 130;
    EXPECT_EQ(gdnFunctionCheck(&function.desc, call.args, 2),
              GDN_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(gdnFunctionCheck(&function.desc, nullptr, 3),
              GDN_ERROR_INVALID_ARGUMENT);
    encodes();
  }
}

/// A driver that moves no tensor map encodes all of them, before the first
/// kernel runs.
TEST_F(Known, TensorMapsThatCannotMove) {
  EXPECT_EQ(encodes(), 2);
  call.workspace = fakeAddress(0, 0x20000);
  fakeFail("cuTensorMapReplaceAddress", 1);
  EXPECT_EQ(encodes(), 2);
  EXPECT_EQ(fakeLastMap()->address, fakeAddress(0, 0x20000 + 512));
  fakeFail("cuTensorMapEncodeTiled", 1);
  call.workspace = fakeAddress(0, 0x30000);
  int launches = fakeCount("cuLaunchKernelEx");
  EXPECT_EQ(call.launch(function), GDN_ERROR_DRIVER);
  EXPECT_EQ(message().substr(0, 39), "encoding the tensor map of x failed: CU");
  EXPECT_EQ(fakeCount("cuLaunchKernelEx"), launches);
  fakeFail("cuTensorMapEncodeTiled", 0);
  EXPECT_EQ(encodes(), 2);
  EXPECT_EQ(encodes(), 0);
}

/// A launch that failed says nothing of the arguments.
TEST_F(Known, FailedLaunches) {
  EXPECT_EQ(encodes(), 2);
  fakeFail("cuLaunchKernelEx", 719);
  call.x.data = fakeAddress(0, 0x2000);
  EXPECT_EQ(call.launch(function), GDN_ERROR_DRIVER);
  EXPECT_EQ(fakeCurrentDevice(), -1) << "a failed launch left its context";
  fakeFail("cuLaunchKernelEx", 0);
  EXPECT_EQ(encodes(), 0);
}

/// Kernels without blocks are not launched, and maps over nothing stay zeros.
TEST_F(Known, NothingToDo) {
  call.shapeX[0] = 0;
  for (int round = 1; round <= 3; ++round) {
    ASSERT_EQ(call.launch(function), GDN_SUCCESS) << message();
    EXPECT_EQ(seen.first, round);
    EXPECT_EQ(seen.second, 0);
    call.x.data = fakeAddress(0, 0x2000);
    call.workspace = fakeAddress(0, 0x20000);
  }
  EXPECT_EQ(fakeCount("cuTensorMapEncodeTiled"), 0);
  EXPECT_EQ(fakeCount("cuTensorMapReplaceAddress"), 0);
  EXPECT_EQ(seen.x, call.x.data);
}

/// Device, stream and preparation are asked about in every call.
TEST_F(Known, OtherDevices) {
  EXPECT_EQ(encodes(), 2);
  call.move(0, 1);
  auto launch = [&] {
    return gdnFunctionLaunch(&function.desc, call.args, 3, call.workspace, 4096,
                             fakeStream(1));
  };
  EXPECT_EQ(launch(), GDN_ERROR_NOT_PREPARED);
  EXPECT_EQ(message(), "expected kernel 'first' to be prepared on device 1, "
                       "got no gdnKernelPrepare for it");
  function.prepare(1);
  EXPECT_EQ(launch(), GDN_SUCCESS) << message();
  EXPECT_TRUE(call.isSeen());
  EXPECT_EQ(fakeLastLaunch()->device, 1);
  EXPECT_EQ(fakeCount("cuTensorMapEncodeTiled"), 2);
  EXPECT_EQ(fakeCurrentDevice(), -1) << "the launch left its context";
}

static int timesAsked;

/// A plan may look at more than shapes, so it is asked in every call.
TEST_F(Known, PlansAreAskedEachTime) {
  MappedFunction planned;
  planned.second.configure = [](const GdnArg *, int32_t, const GdnDeviceInfo *,
                                GdnLaunchConfig *) {
    return ++timesAsked < 3 ? GDN_SUCCESS
                            : gdnSetLastErrorMessage(GDN_ERROR_INVALID_ARGUMENT,
                                                     "expected two calls");
  };
  planned.prepare(0);
  timesAsked = 0;
  EXPECT_EQ(call.launch(planned), GDN_SUCCESS) << message();
  EXPECT_EQ(call.launch(planned), GDN_SUCCESS) << message();
  int launches = fakeCount("cuLaunchKernelEx");
  EXPECT_EQ(call.launch(planned), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "expected two calls");
  EXPECT_EQ(fakeCount("cuLaunchKernelEx"), launches);
}

/// A workspace may be less aligned than a temporary has to be.
TEST_F(Known, TemporariesWithMoreAlignment) {
  MappedFunction aligned;
  aligned.secondArgs[0].alignment = 512;
  aligned.prepare(0);
  EXPECT_EQ(call.launch(aligned), GDN_SUCCESS) << message();
  call.workspace = fakeAddress(0, 0x10100);
  EXPECT_EQ(call.launch(aligned), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message().substr(0, 44),
            "expected chunks to be aligned to 512 bytes, ");
}

TEST_F(Known, UnloadForgets) {
  EXPECT_EQ(encodes(), 2);
  EXPECT_EQ(gdnFunctionUnload(&function.desc), GDN_SUCCESS) << message();
  EXPECT_EQ(call.launch(function), GDN_ERROR_NOT_PREPARED);
  EXPECT_EQ(gdnFunctionUnload(&function.desc), GDN_SUCCESS) << message();
  function.prepare(0);
  EXPECT_EQ(encodes(), 2);
}

/// A kernel that cannot be loaded leaves nothing behind.
TEST_F(Known, FailedLoads) {
  MappedFunction missing;
  missing.second.symbol = "missing";
  EXPECT_EQ(gdnFunctionPrepare(&missing.desc, 0), GDN_ERROR_DRIVER);
  EXPECT_EQ(message().substr(0, 32), "finding kernel 'missing' failed:");
  EXPECT_EQ(missing.kernels[0], nullptr);
  int unloads = fakeCount("cuLibraryUnload");
  EXPECT_EQ(gdnFunctionUnload(&function.desc), GDN_SUCCESS) << message();
  EXPECT_EQ(fakeCount("cuLibraryUnload"), unloads + 1) << "an image is left";
  function.prepare(0);
}

/// Threads with shapes and addresses of their own, more than there are keys,
/// on two devices.
TEST_F(Known, ThreadsLaunchAtOnce) {
  function.prepare(1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([this, i] {
      MappedCall mine;
      for (int round = 0; round < 300; ++round) {
        mine.shapeX[0] = 100 * (1 + (round + i) % 6);
        int device = i % 2;
        mine.move(static_cast<uint64_t>(0x100000 * i + 0x100 * round), device);
        ASSERT_EQ(gdnFunctionLaunch(&function.desc, mine.args, 3,
                                    mine.workspace, 4096, fakeStream(device)),
                  GDN_SUCCESS)
            << gdnGetLastErrorMessage();
        ASSERT_TRUE(mine.isSeen());
        mine.y.data = fakeAddress(device, 0x9004);
        ASSERT_EQ(gdnFunctionCheck(&function.desc, mine.args, 3),
                  GDN_ERROR_INVALID_ARGUMENT);
        ASSERT_STREQ(gdnGetLastErrorMessage(),
                     device ? "expected y to be aligned to 16 bytes, got "
                              "address 0x200000009004"
                            : "expected y to be aligned to 16 bytes, got "
                              "address 0x100000009004");
        mine.y.data = fakeAddress(device, 0x9000);
        ASSERT_EQ(gdnFunctionCheck(&function.desc, mine.args, 3), GDN_SUCCESS);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(fakeCount("cuLaunchKernelEx"), 2 * 8 * 300);
}

/// A thread in a launch keeps no other thread from calls alike.
TEST_F(Known, OneShapeInTwoThreads) {
  EXPECT_EQ(encodes(), 2);
  std::promise<void> isIn, mayLeave;
  std::thread other([&] {
    MappedCall mine;
    mine.move(0x100000);
    entered = &isIn;
    left = mayLeave.get_future();
    ASSERT_EQ(mine.launch(function), GDN_SUCCESS) << gdnGetLastErrorMessage();
    EXPECT_TRUE(mine.isSeen());
  });
  isIn.get_future().wait();
  EXPECT_EQ(encodes(), 2) << "the call that another thread holds";
  EXPECT_EQ(encodes(), 0);
  mayLeave.set_value();
  other.join();
  EXPECT_EQ(encodes(), 0);
}
