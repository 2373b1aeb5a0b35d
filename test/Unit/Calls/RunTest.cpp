//===- RunTest.cpp - Calls with a workspace -------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeDriver.h"
#include "TestEntries.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cstring>
#include <iterator>

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
static const GdnVariantDesc variant = {&function, "cta_per_head", "kv", 0, 0};
static const GdnFact facts[] = {{"op", "gdn.chunk_gated_delta_rule"}};
static const GdnEntryDesc entry = {
    sizeof(GdnEntryDesc), GDN_RUNTIME_VERSION, "layer", 1, 1, facts, &variant};
static const GdnEntryDesc *const entries[] = {&entry};
static void *room = nullptr;
static const GdnCallTable table = {
    sizeof(GdnCallTable), 1, 0, entries, nullptr, &room, nullptr, 0};

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

namespace {
struct Run : ::testing::Test {
  int64_t extents[4] = {1, 100, 2, 64};
  GdnTensor tensors[4];
  GdnCallArray listed[4];
  GdnCall call = {};
  GdnCallPlan plan = {};

  Run() {
    fakeReset();
    fakeSetParams(offsets, 2);
    plan.struct_size = sizeof(plan);
    plan.table = &table;
    plan.variant = &variant;
    for (int8_t i = 0; i < 4; ++i) {
      tensors[i] = {fakeAddress(0, 0x4000000 * (i + 1)), GDN_DTYPE_BF16, 4,
                    extents, nullptr};
      listed[i] = {args[i].name, &tensors[i]};
      plan.arguments[i] = i;
    }
    std::fill(std::begin(plan.converted), std::end(plan.converted), -1);
    call.struct_size = sizeof(call);
    call.num_facts = 1;
    call.num_arrays = 4;
    call.facts = facts;
    call.arrays = listed;
  }

  /// With the library's memory.
  GdnRuntimeStatus runOn(void *stream, int64_t tokens = 100) {
    extents[1] = tokens;
    return gdnCallRun(&plan, &call, nullptr, nullptr, stream);
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

TEST_F(Run, TheCallersAllocatorGivesTheWorkspace) {
  uint64_t asked = 0;
  auto allocate = [](void *user, int32_t device, uint64_t bytes, void *,
                     void **memory) -> GdnRuntimeStatus {
    *static_cast<uint64_t *>(user) = bytes;
    *memory = fakeAddress(device, 0x80000000);
    return GDN_SUCCESS;
  };
  ASSERT_EQ(gdnCallRun(&plan, &call, allocate, &asked, fakeStream(0)),
            GDN_SUCCESS)
      << gdnGetLastErrorMessage();
  EXPECT_EQ(asked, kBytes);
  EXPECT_EQ(fakeCount("cuLaunchKernelEx"), 2);
  EXPECT_STREQ(reinterpret_cast<const char *>(fakeLastLaunch()->function),
               "second");
  EXPECT_EQ(fakeLastLaunch()->config.stream, fakeStream(0));
  EXPECT_EQ(readByLast(), fakeAddress(0, 0x80000000));
  EXPECT_EQ(fakeCount("cuMemAlloc"), 0);
}

TEST_F(Run, AFailedAllocationLaunchesNothing) {
  auto refuse = [](void *, int32_t, uint64_t, void *,
                   void **) -> GdnRuntimeStatus {
    return gdnSetLastErrorMessage(GDN_ERROR_OUT_OF_MEMORY, "none left");
  };
  EXPECT_EQ(gdnCallRun(&plan, &call, refuse, nullptr, fakeStream(0)),
            GDN_ERROR_OUT_OF_MEMORY);
  EXPECT_STREQ(gdnGetLastErrorMessage(), "none left");
  EXPECT_EQ(fakeCount("cuLaunchKernelEx"), 0);
}

/// Without an allocator one piece of memory a stream serves all calls.
TEST_F(Run, OwnMemoryIsKept) {
  auto run = [&](void *stream, int64_t tokens) {
    EXPECT_EQ(runOn(stream, tokens), GDN_SUCCESS) << gdnGetLastErrorMessage();
    return readByLast();
  };
  void *piece = run(fakeStream(0), 100);
  EXPECT_NE(piece, nullptr);
  int allocations = fakeCount("cuMemAlloc");
  EXPECT_EQ(allocations, 1);
  EXPECT_EQ(run(fakeStream(0), 100), piece);
  EXPECT_EQ(run(fakeStream(0), 90), piece);
  EXPECT_EQ(fakeCount("cuMemAlloc"), allocations);
  // A larger call has a larger piece; the old one may be in a captured graph.
  run(fakeStream(0), 101);
  EXPECT_EQ(fakeCount("cuMemAlloc"), allocations + 1);
  EXPECT_EQ(fakeCount("cuMemFree"), 0);
  // Another stream may run at the same time.
  run(nullptr, 100);
  EXPECT_EQ(fakeCount("cuMemAlloc"), allocations + 2);
}

TEST_F(Run, OwnMemoryThatIsNotThere) {
  fakeFail("cuMemAlloc", 2);
  EXPECT_EQ(runOn(fakeStream(0), 100000), GDN_ERROR_OUT_OF_MEMORY);
  EXPECT_NE(std::string(gdnGetLastErrorMessage())
                .find("bytes of workspace on cuda:0, got: "),
            std::string::npos)
      << gdnGetLastErrorMessage();
  EXPECT_EQ(fakeCount("cuLaunchKernelEx"), 0);
}

/// Devices that the runtime does not know are refused.
TEST_F(Run, DevicesBeyondTheRuntimesAreRefused) {
  for (int32_t device : {64, 128, -1, -64}) {
    call.device = device;
    EXPECT_NE(runOn(fakeStream(0)), GDN_SUCCESS) << device;
  }
}

/// What nobody has allocated is described as what is there.
TEST_F(Run, ACallIsDescribedWithoutAddresses) {
  auto describe = [&] {
    char text[2048] = "";
    size_t needed = 0;
    EXPECT_EQ(gdnCallDescribe(&table, &call, text, sizeof(text), &needed),
              GDN_SUCCESS)
        << gdnGetLastErrorMessage();
    return std::string(text);
  };
  std::string known = describe();
  EXPECT_NE(known.find("\"kernel\": \"layer\""), std::string::npos) << known;
  for (GdnTensor &tensor : tensors)
    tensor.data = nullptr;
  EXPECT_EQ(describe(), known);
  EXPECT_NE(runOn(fakeStream(0)), GDN_SUCCESS);
}
