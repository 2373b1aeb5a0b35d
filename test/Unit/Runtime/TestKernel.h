//===- TestKernel.h - A kernel description with everything ------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernel's arguments: q [T, H, 128] bf16 by tensor map in panels of 64
// columns, an optional out [T, H] f32, three scalars and a workspace.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TEST_UNIT_RUNTIME_TESTKERNEL_H
#define GDN_TEST_UNIT_RUNTIME_TESTKERNEL_H

#include "FakeDriver.h"

#include "gtest/gtest.h"

#include <string>
#include <vector>

inline const char testImage[] = "a text that ends in a 0 byte";
inline const char *const testSymbols[] = {"T", "H"};
inline const int64_t testShapeQ[] = {GDN_SYMBOL(0), GDN_SYMBOL(1), 128};
inline const int64_t testShapeOut[] = {GDN_SYMBOL(0), GDN_SYMBOL(1)};

/// A description that a test may change before it is loaded.
struct TestDesc {
  GdnArgDesc args[5] = {
      {"q", GDN_ARG_TENSOR, GDN_DTYPE_BF16, 3, 0, testShapeQ, 0},
      {"out", GDN_ARG_TENSOR, GDN_DTYPE_F32, 2,
       GDN_ARG_FLAG_OPTIONAL | GDN_ARG_FLAG_CONTIGUOUS, testShapeOut, 8},
      {"scale", GDN_ARG_F32, 0, 0, 0, nullptr, 0},
      {"n", GDN_ARG_I32, 0, 0, 0, nullptr, 0},
      {"offset", GDN_ARG_I64, 0, 0, 0, nullptr, 0}};
  GdnTensorMapDim dims[4] = {
      {2, 64, 64, 1}, {0, 32, 0, 1}, {2, 2, 2, 64}, {1, 1, 0, 1}};
  GdnTensorMapDesc map = {0, 4, GDN_SWIZZLE_128B, GDN_L2_PROMOTION_256B, dims};
  GdnParamDesc params[8] = {
      {GDN_PARAM_TENSOR_MAP, 0, 0, 0},
      {GDN_PARAM_POINTER, 1, 0, 0},
      {GDN_PARAM_EXTENT, 0, 0, GDN_DTYPE_I32},
      {GDN_PARAM_STRIDE, 0, 0, GDN_DTYPE_I64},
      {GDN_PARAM_SCALAR, 2, 0, 0},
      {GDN_PARAM_SCALAR, 3, 0, 0},
      {GDN_PARAM_SCALAR, 4, 0, 0},
      {GDN_PARAM_WORKSPACE, 0, 0, 0},
  };
  GdnKernelDesc desc = {sizeof(GdnKernelDesc),
                        GDN_RUNTIME_VERSION,
                        "attend",
                        testImage,
                        sizeof(testImage),
                        90,
                        256,
                        200000,
                        2,
                        0,
                        0,
                        5,
                        8,
                        1,
                        2,
                        args,
                        params,
                        &map,
                        testSymbols,
                        &configure};

  /// One cluster a head, one byte of workspace a token.
  static GdnRuntimeStatus configure(const GdnArg *args, int32_t,
                                    const GdnDeviceInfo *,
                                    GdnLaunchConfig *config) {
    const GdnTensor &q = *args[0].value.tensor;
    if (args[3].value.i32 < 0)
      return gdnSetLastErrorMessage(GDN_ERROR_INVALID_ARGUMENT,
                                    "expected n >= 0, got less");
    config->grid = {2 * static_cast<uint32_t>(q.shape[1]), 1, 1};
    config->workspace_bytes = static_cast<uint64_t>(q.shape[0]);
    return GDN_SUCCESS;
  }

  TestDesc() = default;
  TestDesc(const TestDesc &) = delete;
  TestDesc &operator=(const TestDesc &) = delete;
};

/// Arguments that the kernel takes on a device: q is a view of a fused
/// projection with rows of 1024 elements.
struct TestArgs {
  int64_t shapeQ[3] = {100, 3, 128};
  int64_t stridesQ[3] = {1024, 128, 1};
  int64_t shapeOut[2] = {100, 3};
  GdnTensor q, out;
  GdnArg list[5];
  void *workspace;

  explicit TestArgs(int device = 0)
      : q{fakeAddress(device, 0x1000), GDN_DTYPE_BF16, 3, shapeQ, stridesQ},
        out{fakeAddress(device, 0x8000), GDN_DTYPE_F32, 2, shapeOut, nullptr},
        workspace(fakeAddress(device, 0x10000)) {
    list[0].kind = list[1].kind = GDN_ARG_TENSOR;
    list[0].value.tensor = &q;
    list[1].value.tensor = &out;
    list[2].kind = GDN_ARG_F32;
    list[2].value.f32 = 0.5f;
    list[3].kind = GDN_ARG_I32;
    list[3].value.i32 = 7;
    list[4].kind = GDN_ARG_I64;
    list[4].value.i64 = int64_t(1) << 40;
  }
  TestArgs(const TestArgs &) = delete;
  TestArgs &operator=(const TestArgs &) = delete;

  GdnRuntimeStatus launch(const GdnKernel *kernel, void *stream,
                          const GdnGrid *grid = nullptr) const {
    return gdnKernelLaunch(kernel, list, 5, workspace, 4096, grid, stream);
  }
};

/// A fake driver without memory of the last test.
class RuntimeTest : public ::testing::Test {
protected:
  /// As a driver lays the parameters out, which keeps the map's address, not
  /// its offset, aligned to 64.
  static constexpr FakeParam params[] = {{48, 128}, {176, 8}, {184, 4},
                                         {192, 8},  {200, 4}, {204, 4},
                                         {208, 8},  {216, 8}};

  void SetUp() override {
    fakeReset();
    fakeSetParams(params, 8);
  }
  void TearDown() override {
    fakeReset();
    for (GdnKernel *kernel : loaded)
      EXPECT_EQ(gdnKernelUnload(kernel), GDN_SUCCESS);
  }

  /// Loads a kernel that the test's end unloads; null after a failure.
  GdnKernel *load(const TestDesc &test) {
    GdnKernel *kernel = nullptr;
    if (gdnKernelLoad(&test.desc, &kernel) == GDN_SUCCESS)
      loaded.push_back(kernel);
    return kernel;
  }
  /// Loads a kernel and prepares it on device 0.
  GdnKernel *prepare(const TestDesc &test) {
    GdnKernel *kernel = load(test);
    EXPECT_EQ(gdnKernelPrepare(kernel, 0), GDN_SUCCESS)
        << gdnGetLastErrorMessage();
    return kernel;
  }
  static std::string message() { return gdnGetLastErrorMessage(); }

private:
  std::vector<GdnKernel *> loaded;
};

#endif // GDN_TEST_UNIT_RUNTIME_TESTKERNEL_H
