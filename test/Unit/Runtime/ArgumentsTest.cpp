//===- ArgumentsTest.cpp - What a launch refuses --------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestKernel.h"

using Arguments = RuntimeTest;

/// Launches what must be refused; nothing may reach the driver.
static std::string refusal(const GdnKernel *kernel, const TestArgs &args) {
  EXPECT_EQ(args.launch(kernel, fakeStream(0)), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(fakeCount("cuLaunchKernelEx"), 0);
  return gdnGetLastErrorMessage();
}

TEST_F(Arguments, CountAndKind) {
  TestDesc test;
  GdnKernel *kernel = prepare(test);
  TestArgs args;
  EXPECT_EQ(
      gdnKernelLaunch(kernel, args.list, 4, nullptr, 0, nullptr, fakeStream(0)),
      GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "expected 5 arguments of 'attend', got 4");
  EXPECT_EQ(
      gdnKernelLaunch(kernel, nullptr, 5, nullptr, 0, nullptr, fakeStream(0)),
      GDN_ERROR_INVALID_ARGUMENT);
  args.list[2].kind = GDN_ARG_I64;
  EXPECT_EQ(refusal(kernel, args),
            "expected argument 2 (scale) to be an f32, got an i64");
}

TEST_F(Arguments, TypeAndShape) {
  TestDesc test;
  GdnKernel *kernel = prepare(test);
  TestArgs args;
  args.q.dtype = GDN_DTYPE_F16;
  EXPECT_EQ(refusal(kernel, args), "expected q of type bf16, got f16");
  args.q.dtype = GDN_DTYPE_BF16;
  args.q.rank = 2;
  EXPECT_EQ(refusal(kernel, args),
            "expected q of shape [T, H, 128], got [100, 3]");
  args.q.rank = 3;
  args.shapeQ[2] = 64;
  EXPECT_EQ(refusal(kernel, args),
            "expected q of shape [T, H, 128], got [100, 3, 64]");
  args.shapeQ[2] = 128;
  args.shapeOut[1] = 4;
  EXPECT_EQ(refusal(kernel, args),
            "expected out of shape [T=100, H=3], got [100, 4]");
  args.shapeQ[0] = -1;
  EXPECT_EQ(refusal(kernel, args),
            "expected q of shape [T, H, 128], got [-1, 3, 128]");
  args.q.shape = nullptr;
  EXPECT_EQ(refusal(kernel, args), "expected q to have a shape, got none");
}

TEST_F(Arguments, PointersAndAlignment) {
  TestDesc test;
  GdnKernel *kernel = prepare(test);
  TestArgs args;
  args.q.data = nullptr;
  EXPECT_EQ(refusal(kernel, args),
            "expected q to have data, got a null pointer");
  args.q.data = fakeAddress(0, 0x1008);
  EXPECT_EQ(refusal(kernel, args),
            "expected q to be aligned to 16 bytes, got address 0x100000001008");
  args.q.data = fakeAddress(0, 0x1000);
  args.out.data = fakeAddress(0, 0x1004);
  EXPECT_EQ(
      refusal(kernel, args),
      "expected out to be aligned to 8 bytes, got address 0x100000001004");
  args.list[0].value.tensor = nullptr;
  EXPECT_EQ(refusal(kernel, args), "expected q, got none");
}

TEST_F(Arguments, Strides) {
  TestDesc test;
  GdnKernel *kernel = prepare(test);
  TestArgs args;
  args.stridesQ[2] = 2;
  EXPECT_EQ(refusal(kernel, args),
            "expected q to have stride 1 in dimension 2, got 2");
  args.stridesQ[2] = 1;
  for (int64_t stride : {int64_t(1025), int64_t(-1024), int64_t(1) << 40}) {
    args.stridesQ[0] = stride;
    EXPECT_EQ(
        refusal(kernel, args),
        "expected strides of q in multiples of 16 bytes below 2^40, got " +
            std::to_string(stride) + " elements in dimension 0");
  }
  args.stridesQ[0] = INT64_MAX / 2;
  EXPECT_EQ(refusal(kernel, args),
            "expected q to span less than 2^63 bytes, got more");
  args.stridesQ[0] = 1024;
  const int64_t stridesOut[] = {1, 100};
  args.out.strides = stridesOut;
  EXPECT_EQ(refusal(kernel, args),
            "expected out to have stride 1 in dimension 1, got 100");
}

/// The stride of an extent of 1 is whatever its maker left there.
TEST_F(Arguments, StridesOfSingleExtentsAreIgnored) {
  TestDesc test;
  GdnKernel *kernel = prepare(test);
  TestArgs args;
  args.shapeQ[0] = args.shapeOut[0] = 1;
  args.stridesQ[0] = 5;
  const int64_t stridesOut[] = {77, 1};
  args.out.strides = stridesOut;
  EXPECT_EQ(args.launch(kernel, fakeStream(0)), GDN_SUCCESS) << message();
  EXPECT_EQ(fakeLastMap()->strides[0] % 16, 0u);
}

TEST_F(Arguments, Ranges) {
  TestDesc test;
  GdnKernel *kernel = prepare(test);
  TestArgs args;
  args.list[1].value.tensor = nullptr;
  args.shapeQ[0] = int64_t(1) << 31;
  EXPECT_EQ(refusal(kernel, args),
            "expected extent 0 of q to fit 32 bits, got 2147483648");
  args.shapeQ[0] = int64_t(1) << 60;
  args.q.strides = nullptr;
  EXPECT_EQ(refusal(kernel, args),
            "expected q to span less than 2^63 bytes, got more");
}

/// A split dimension must hold all its parts.
TEST_F(Arguments, MapStaysInsideTheArray) {
  static const int64_t shape[] = {GDN_SYMBOL(0), GDN_SYMBOL(1), 96};
  TestDesc test;
  test.args[0].shape = shape;
  GdnKernel *kernel = prepare(test);
  TestArgs args;
  args.shapeQ[2] = 96;
  EXPECT_EQ(refusal(kernel, args),
            "expected extent 2 of q to hold 2 steps of 64, got 96");
}

/// GDN_RUNTIME_CHECK=1 of this program asks the driver.
TEST_F(Arguments, OtherDevicesMemory) {
  TestDesc test;
  GdnKernel *kernel = prepare(test);
  TestArgs args;
  args.out.data = fakeAddress(1, 0);
  EXPECT_EQ(refusal(kernel, args), "expected out on device 0, got device 1");
  args.out.data = reinterpret_cast<void *>(0x7000);
  EXPECT_EQ(refusal(kernel, args),
            "expected out in device memory, got address 0x7000");
  args.out.data = fakeAddress(0, 0);
  args.workspace = fakeAddress(1, 0);
  EXPECT_EQ(refusal(kernel, args),
            "expected the workspace on device 0, got device 1");
}

TEST_F(Arguments, PlanChecksThemToo) {
  TestDesc test;
  GdnKernel *kernel = load(test);
  TestArgs args;
  GdnLaunchConfig config;
  config.struct_size = sizeof(config);
  ASSERT_EQ(gdnKernelConfigure(kernel, 0, args.list, 5, &config), GDN_SUCCESS)
      << message();
  EXPECT_EQ(config.grid.x, 6u);
  EXPECT_EQ(config.workspace_bytes, 100u);
  args.list[3].value.i32 = -1;
  EXPECT_EQ(gdnKernelConfigure(kernel, 0, args.list, 5, &config),
            GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "expected n >= 0, got less");
  args.q.data = fakeAddress(0, 8);
  EXPECT_EQ(gdnKernelConfigure(kernel, 0, args.list, 5, &config),
            GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(gdnKernelConfigure(kernel, 0, args.list, 5, nullptr),
            GDN_ERROR_INVALID_ARGUMENT);
}
