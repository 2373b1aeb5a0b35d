//===- TestFunction.h - A function of two kernels for tests -----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TEST_UNIT_RUNTIME_TESTFUNCTION_H
#define GDN_TEST_UNIT_RUNTIME_TESTFUNCTION_H

#include "TestKernel.h"

/// The index steps of TestFunction.
enum Step { stepT, stepH, stepN1, stepOne, stepN, stepChunk, stepChunks };

/// y [N] of x [T, H] and boundaries [N + 1]: kernel "first" writes two
/// temporaries, [T] and [T / 64 rounded up, H], kernel "second" reads the other
/// one with the number of tokens.
struct TestFunction {
  const char *symbols[4] = {"T", "H", "N+1", "N"};
  int64_t shapeX[2] = {GDN_SYMBOL(0), GDN_SYMBOL(1)};
  int64_t shapeCu[1] = {GDN_SYMBOL(2)};
  int64_t shapeY[1] = {GDN_SYMBOL(3)};
  GdnArgDesc args[3] = {
      {"x", GDN_ARG_TENSOR, GDN_DTYPE_F32, 2, 0, shapeX, 0},
      {"cu_seqlens", GDN_ARG_TENSOR, GDN_DTYPE_I32, 1, 0, shapeCu, 0},
      {"y", GDN_ARG_TENSOR, GDN_DTYPE_F32, 1, 0, shapeY, 0}};
  GdnIndexStep steps[7] = {{GDN_INDEX_EXTENT, 0, 0, 0},
                           {GDN_INDEX_EXTENT, 0, 1, 0},
                           {GDN_INDEX_EXTENT, 1, 0, 0},
                           {GDN_INDEX_CONSTANT, 0, 0, 1},
                           {GDN_INDEX_SUBTRACT, stepN1, stepOne, 0},
                           {GDN_INDEX_CONSTANT, 0, 0, 64},
                           {GDN_INDEX_DIVIDE_UP, stepT, stepChunk, 0}};
  GdnExtentRule rule = {2, 0, stepN};
  int32_t shapeTokens[1] = {stepT};
  int32_t shapeChunks[2] = {stepChunks, stepH};
  GdnTemporaryDesc temporaries[2] = {{GDN_DTYPE_BF16, 1, shapeTokens},
                                     {GDN_DTYPE_F32, 2, shapeChunks}};

  const char *kernelSymbols[2] = {"d0", "d1"};
  GdnArgDesc firstArgs[1] = {
      {"x", GDN_ARG_TENSOR, GDN_DTYPE_F32, 2, 0, shapeX, 0}};
  GdnParamDesc firstParams[1] = {{GDN_PARAM_POINTER, 0, 0, 0}};
  GdnKernelDesc first = makeKernel("first", firstArgs, 1, firstParams, 1);
  GdnOperand firstOperands[1] = {{GDN_OPERAND_ARGUMENT, 0}};

  int64_t shapeAny[1] = {GDN_SYMBOL(1)};
  GdnArgDesc secondArgs[3] = {
      {"chunks", GDN_ARG_TENSOR, GDN_DTYPE_F32, 2, GDN_ARG_FLAG_CONTIGUOUS,
       shapeX, 0},
      {"y", GDN_ARG_TENSOR, GDN_DTYPE_F32, 1, 0, shapeAny, 16},
      {"tokens", GDN_ARG_I32, 0, 0, 0, nullptr, 0}};
  GdnParamDesc secondParams[4] = {{GDN_PARAM_POINTER, 0, 0, 0},
                                  {GDN_PARAM_EXTENT, 0, 0, GDN_DTYPE_I64},
                                  {GDN_PARAM_POINTER, 1, 0, 0},
                                  {GDN_PARAM_SCALAR, 2, 0, 0}};
  GdnKernelDesc second = makeKernel("second", secondArgs, 3, secondParams, 4);
  GdnOperand secondOperands[3] = {{GDN_OPERAND_TEMPORARY, 1},
                                  {GDN_OPERAND_ARGUMENT, 2},
                                  {GDN_OPERAND_INDEX, stepT}};
  GdnLaunchDesc launches[2] = {
      {&first, firstOperands, 1, {stepN, stepH, stepOne}},
      {&second, secondOperands, 3, {stepChunks, stepOne, stepH}}};
  int32_t results[1] = {2};
  void *kernels[2] = {};
  GdnFunctionDesc desc = {sizeof(GdnFunctionDesc),
                          GDN_RUNTIME_VERSION,
                          "pool",
                          nullptr,
                          2,
                          3,
                          4,
                          7,
                          1,
                          2,
                          0,
                          2,
                          1,
                          args,
                          symbols,
                          steps,
                          &rule,
                          temporaries,
                          nullptr,
                          launches,
                          results,
                          kernels};

  GdnKernelDesc makeKernel(const char *name, const GdnArgDesc *list,
                           int32_t numArgs, const GdnParamDesc *params,
                           int32_t numParams) {
    GdnKernelDesc kernel = {};
    kernel.struct_size = sizeof(kernel);
    kernel.version = GDN_RUNTIME_VERSION;
    kernel.symbol = name;
    kernel.image = testImage;
    kernel.image_bytes = sizeof(testImage);
    kernel.compute_capability = 90;
    kernel.threads = 128;
    kernel.num_args = numArgs;
    kernel.num_params = numParams;
    kernel.num_symbols = 2;
    kernel.args = list;
    kernel.params = params;
    kernel.symbols = kernelSymbols;
    return kernel;
  }

  TestFunction() = default;
  TestFunction(const TestFunction &) = delete;
  TestFunction &operator=(const TestFunction &) = delete;
  ~TestFunction() { gdnFunctionUnload(&desc); }
};

/// 130 tokens of 3 heads in 3 sequences.
struct TestCall {
  int64_t shapeX[2] = {130, 3}, shapeCu[1] = {4}, shapeY[1] = {3};
  GdnTensor x = {fakeAddress(0, 0x1000), GDN_DTYPE_F32, 2, shapeX, nullptr};
  GdnTensor cu = {fakeAddress(0, 0x8000), GDN_DTYPE_I32, 1, shapeCu, nullptr};
  GdnTensor y = {fakeAddress(0, 0x9000), GDN_DTYPE_F32, 1, shapeY, nullptr};
  GdnArg args[3];
  void *workspace = fakeAddress(0, 0x10000);

  TestCall() {
    const GdnTensor *tensors[] = {&x, &cu, &y};
    for (int i = 0; i < 3; ++i) {
      args[i].kind = GDN_ARG_TENSOR;
      args[i].value.tensor = tensors[i];
    }
  }
  TestCall(const TestCall &) = delete;
  TestCall &operator=(const TestCall &) = delete;

  GdnRuntimeStatus launch(const TestFunction &function, size_t bytes = 4096) {
    return gdnFunctionLaunch(&function.desc, args, 3, workspace, bytes,
                             fakeStream(0));
  }
};
inline const FakeParam poolParams[] = {{0, 8}, {8, 8}, {16, 8}, {24, 4}};

/// Prepares one kernel after the other: the fake driver knows one list of
/// parameters at a time.
inline void prepareBoth(TestFunction &function) {
  fakeSetParams(poolParams, 1);
  GdnKernel *first;
  ASSERT_EQ(gdnKernelLoad(&function.first, &first), GDN_SUCCESS);
  ASSERT_EQ(gdnKernelPrepare(first, 0), GDN_SUCCESS)
      << gdnGetLastErrorMessage();
  fakeSetParams(poolParams, 4);
  ASSERT_EQ(gdnFunctionPrepare(&function.desc, 0), GDN_SUCCESS)
      << gdnGetLastErrorMessage();
  ASSERT_EQ(gdnKernelUnload(first), GDN_SUCCESS);
  // A launch of "first" hands over one parameter only.
  fakeSetParams(poolParams, 0);
}

#endif // GDN_TEST_UNIT_RUNTIME_TESTFUNCTION_H
