//===- LaunchTest.cpp - Calls of the package with several kernels ---------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeDriver.h"
#include "Hopper.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

using namespace gdn;
using namespace gdn::hopper;

//===----------------------------------------------------------------------===//
// A plan whose function has two kernels and an array between them
//===----------------------------------------------------------------------===//

static const char image[] = "a text that ends in a 0 byte";
static const char *const symbols[] = {"B", "T", "H"};
static const int64_t shape[] = {GDN_SYMBOL(0), GDN_SYMBOL(1), GDN_SYMBOL(2),
                                64};
static const GdnArgDesc arrays[] = {
    {"from", GDN_ARG_TENSOR, GDN_DTYPE_BF16, 4, 0, shape, 0},
    {"to", GDN_ARG_TENSOR, GDN_DTYPE_BF16, 4, 0, shape, 0}};
static const GdnParamDesc pointers[] = {{GDN_PARAM_POINTER, 0, 0, 0},
                                        {GDN_PARAM_POINTER, 1, 0, 0}};
static const FakeParam offsets[] = {{0, 8}, {8, 8}};

static GdnKernelDesc makeKernel(const char *name) {
  GdnKernelDesc kernel = {};
  kernel.struct_size = sizeof(kernel);
  kernel.version = GDN_RUNTIME_VERSION;
  kernel.symbol = name;
  kernel.image = image;
  kernel.image_bytes = sizeof(image);
  kernel.compute_capability = 90;
  kernel.threads = 128;
  kernel.num_args = kernel.num_params = 2;
  kernel.num_symbols = 3;
  kernel.args = arrays;
  kernel.params = pointers;
  kernel.symbols = symbols;
  return kernel;
}

static const GdnKernelDesc first = makeKernel("first"),
                           second = makeKernel("second");
/// q, k, v and o, which a call without states has.
static const GdnArgDesc args[] = {
    {"q", GDN_ARG_TENSOR, GDN_DTYPE_BF16, 4, 0, shape, 0},
    {"k", GDN_ARG_TENSOR, GDN_DTYPE_BF16, 4, 0, shape, 0},
    {"v", GDN_ARG_TENSOR, GDN_DTYPE_BF16, 4, 0, shape, 0},
    {"o", GDN_ARG_TENSOR, GDN_DTYPE_BF16, 4, 0, shape, 0}};
static const GdnIndexStep steps[] = {{GDN_INDEX_EXTENT, 0, 0, 0},
                                     {GDN_INDEX_EXTENT, 0, 1, 0},
                                     {GDN_INDEX_EXTENT, 0, 2, 0},
                                     {GDN_INDEX_CONSTANT, 0, 0, 64}};
static const int32_t temporaryShape[] = {0, 1, 2, 3};
static const GdnTemporaryDesc temporary = {GDN_DTYPE_BF16, 4, temporaryShape};
static const GdnOperand firstOperands[] = {{GDN_OPERAND_ARGUMENT, 0},
                                           {GDN_OPERAND_TEMPORARY, 0}},
                        secondOperands[] = {{GDN_OPERAND_TEMPORARY, 0},
                                            {GDN_OPERAND_ARGUMENT, 3}};
static const GdnLaunchDesc launches[] = {
    {&first, firstOperands, 2, {0, 1, 2}},
    {&second, secondOperands, 2, {0, 0, 2}}};
static const int32_t results[] = {3};
static void *handles[2] = {};

static GdnFunctionDesc makeFunction() {
  GdnFunctionDesc function = {};
  function.struct_size = sizeof(function);
  function.version = GDN_RUNTIME_VERSION;
  function.name = "layer";
  function.num_inputs = 3;
  function.num_args = 4;
  function.num_symbols = 3;
  function.num_steps = 4;
  function.num_temporaries = 1;
  function.num_launches = 2;
  function.num_results = 1;
  function.args = args;
  function.symbols = symbols;
  function.steps = steps;
  function.temporaries = &temporary;
  function.launches = launches;
  function.results = results;
  function.kernels = handles;
  return function;
}

static const GdnFunctionDesc function = makeFunction();
static const GdnVariantDesc variant = {&function, "cta_per_head", "kv", 0};
static const GdnCallTable noTable = {
    sizeof(GdnCallTable), 0, 0, nullptr, nullptr, nullptr};

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

namespace {
struct Call : ::testing::Test {
  Problem problem;
  GdnCallPlan plan = {};

  Call() {
    fakeReset();
    fakeSetParams(offsets, 2);
    problem.device = {cpu::Device::CUDA, 0};
    setTokens(100);
    plan.struct_size = sizeof(plan);
    plan.table = &noTable;
    plan.variant = &variant;
    const auto all = arraysOf<cpu::Arrays>(problem);
    int8_t place = 0;
    for (cpu::Array *array : arrays())
      plan.arguments[place++] = static_cast<int8_t>(
          std::find(all.begin(), all.end(), array) - all.begin());
    std::fill(std::begin(plan.converted), std::end(plan.converted), -1);
  }

  std::array<cpu::Array *, 4> arrays() {
    return {&problem.q, &problem.k, &problem.v, &problem.o};
  }

  void setTokens(int64_t tokens) {
    uint64_t offset = 0x1000;
    for (cpu::Array *array : arrays()) {
      array->data = fakeAddress(0, offset += 0x100000);
      array->element = cpu::Element::BF16;
      array->rank = 4;
      array->sizes = {1, tokens, 2, 64};
      array->strides = {tokens * 128, 128, 64, 1};
    }
  }

  /// The array that the last launch, of "second", read.
  static void *readByLast() {
    void *data;
    std::memcpy(&data, fakeLastLaunch()->parameters, sizeof(data));
    return data;
  }
};
} // namespace

/// 100 tokens of 2 heads of 64 bf16.
static constexpr uint64_t kBytes = 100 * 2 * 64 * 2;

static uint64_t bytesAsked = 0;
static bool isGivenBack = false;

/// An allocator as a caller's library brings it.
static Workspace allocateForTest(int32_t device, void *, uint64_t bytes) {
  bytesAsked = bytes;
  isGivenBack = false;
  return Workspace(fakeAddress(device, 0x8000000),
                   [](void *) { isGivenBack = true; });
}

/// What a forward throws; no kind if it does not.
static cpu::Error runForward(const Problem &problem, const GdnCallPlan *plan,
                             void *stream, const Allocate &allocate) {
  try {
    launch(problem, plan, stream, allocate);
    return {nullptr, {}};
  } catch (const cpu::Error &error) {
    return error;
  }
}

TEST_F(Call, TheCallersAllocatorGivesTheWorkspace) {
  cpu::Error error = runForward(problem, &plan, fakeStream(0), allocateForTest);
  ASSERT_FALSE(error.kind) << error.message;
  EXPECT_EQ(bytesAsked, kBytes);
  EXPECT_TRUE(isGivenBack);
  EXPECT_EQ(fakeCount("cuLaunchKernelEx"), 2);
  EXPECT_STREQ(reinterpret_cast<const char *>(fakeLastLaunch()->function),
               "second");
  EXPECT_EQ(fakeLastLaunch()->config.stream, fakeStream(0));
  EXPECT_EQ(readByLast(), fakeAddress(0, 0x8000000));
  EXPECT_EQ(fakeCount("cuMemAlloc"), 0);
}

TEST_F(Call, AFailedAllocationLaunchesNothing) {
  cpu::Error error = runForward(problem, &plan, fakeStream(0),
                                [](int32_t, void *, uint64_t) -> Workspace {
                                  throw cpu::Error{"MemoryError", "none left"};
                                });
  EXPECT_STREQ(error.kind, "MemoryError");
  EXPECT_EQ(fakeCount("cuLaunchKernelEx"), 0);
}

/// Without an allocator one piece of memory a stream serves all calls.
TEST_F(Call, OwnMemoryIsKept) {
  auto launch = [&](void *stream) {
    cpu::Error error = runForward(problem, &plan, stream, allocateOwn);
    EXPECT_FALSE(error.kind) << error.message;
    return readByLast();
  };
  void *piece = launch(fakeStream(0));
  EXPECT_NE(piece, nullptr);
  int allocations = fakeCount("cuMemAlloc");
  EXPECT_EQ(allocations, 1);
  EXPECT_EQ(launch(fakeStream(0)), piece);
  setTokens(90);
  EXPECT_EQ(launch(fakeStream(0)), piece);
  EXPECT_EQ(fakeCount("cuMemAlloc"), allocations);
  // A larger call has a larger piece; the old one may be in a captured graph.
  setTokens(101);
  launch(fakeStream(0));
  EXPECT_EQ(fakeCount("cuMemAlloc"), allocations + 1);
  EXPECT_EQ(fakeCount("cuMemFree"), 0);
  // Another stream may run at the same time.
  launch(nullptr);
  EXPECT_EQ(fakeCount("cuMemAlloc"), allocations + 2);
}

TEST_F(Call, OwnMemoryThatIsNotThere) {
  fakeFail("cuMemAlloc", 2);
  setTokens(100000);
  cpu::Error error = runForward(problem, &plan, fakeStream(0), allocateOwn);
  EXPECT_STREQ(error.kind, "MemoryError");
  EXPECT_NE(error.message.find("bytes of workspace on cuda:0, got: "),
            std::string::npos)
      << error.message;
  EXPECT_EQ(fakeCount("cuLaunchKernelEx"), 0);
}

/// Devices that the runtime does not know are refused.
TEST_F(Call, DevicesBeyondTheRuntimesAreRefused) {
  for (int32_t device : {64, 128, -1, -64}) {
    problem.device.index = device;
    cpu::Error error =
        runForward(problem, &plan, fakeStream(0), allocateForTest);
    EXPECT_TRUE(error.kind) << device;
  }
}

int main(int argc, char **argv) {
  // The runtime reads them when it opens the driver.
  setenv("GDN_CUDA_DRIVER", GDN_FAKE_DRIVER, /*overwrite=*/1);
  setenv("FAKE_CUDA_MISSING", "cuKernelGetParamInfo", /*overwrite=*/1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
