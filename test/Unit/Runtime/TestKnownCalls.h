//===- TestKnownCalls.h - A function with tensor maps -----------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function whose two kernels have tensor maps, over an argument and over a
// temporary. A call that is not known encodes both, and a known one none.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TEST_UNIT_RUNTIME_TESTKNOWNCALLS_H
#define GDN_TEST_UNIT_RUNTIME_TESTKNOWNCALLS_H

#include "TestFunction.h"

#include <cstring>
#include <future>

template <typename T> T read(const void *from) {
  T value;
  memcpy(&value, from, sizeof(value));
  return value;
}

/// TestFunction with a tensor map in front of each kernel's parameters. Rows of
/// x and of the temporary have 4 elements.
struct MappedFunction : TestFunction {
  GdnTensorMapDim dims[2] = {{1, 4, 0, 1}, {0, 1, 0, 1}};
  GdnTensorMapDesc map = {0, 2, GDN_SWIZZLE_NONE, GDN_L2_PROMOTION_128B, dims};
  GdnParamDesc firstMapped[2] = {{GDN_PARAM_TENSOR_MAP, 0, 0, 0},
                                 {GDN_PARAM_POINTER, 0, 0, 0}};
  GdnParamDesc secondMapped[5] = {{GDN_PARAM_TENSOR_MAP, 0, 0, 0},
                                  {GDN_PARAM_POINTER, 0, 0, 0},
                                  {GDN_PARAM_EXTENT, 0, 0, GDN_DTYPE_I64},
                                  {GDN_PARAM_POINTER, 1, 0, 0},
                                  {GDN_PARAM_SCALAR, 2, 0, 0}};

  MappedFunction() {
    for (GdnKernelDesc *kernel : {&first, &second}) {
      kernel->num_tensor_maps = 1;
      kernel->tensor_maps = &map;
    }
    first.params = firstMapped;
    first.num_params = 2;
    second.params = secondMapped;
    second.num_params = 5;
  }

  /// Prepares one kernel after the other, as prepareBoth.
  void prepare(int device) {
    static constexpr FakeParam places[] = {
        {0, 128}, {128, 8}, {136, 8}, {144, 8}, {152, 4}};
    fakeSetParams(places, 2);
    GdnKernel *kernel;
    ASSERT_EQ(gdnKernelLoad(&first, &kernel), GDN_SUCCESS);
    ASSERT_EQ(gdnKernelPrepare(kernel, device), GDN_SUCCESS)
        << gdnGetLastErrorMessage();
    fakeSetParams(places, 5);
    ASSERT_EQ(gdnFunctionPrepare(&desc, device), GDN_SUCCESS)
        << gdnGetLastErrorMessage();
    ASSERT_EQ(gdnKernelUnload(kernel), GDN_SUCCESS);
    fakeSetParams(places, 0);
  }
};

/// The values that kernels were launched with, in the launching thread.
struct Seen {
  int first, second;
  void *x, *chunks, *y;
  int64_t numChunks;
  int32_t tokens;
};
inline thread_local Seen seen;
/// What a thread waits for in its first launch, and says before.
inline thread_local std::promise<void> *entered;
inline thread_local std::future<void> left;

/// 130 tokens of 4 heads in 4 sequences.
struct MappedCall : TestCall {
  MappedCall() {
    shapeX[1] = shapeY[0] = 4;
    shapeCu[0] = 5;
  }

  void move(uint64_t offset, int device = 0) {
    x.data = fakeAddress(device, 0x1000 + offset);
    cu.data = fakeAddress(device, 0x8000 + offset);
    y.data = fakeAddress(device, 0x9000 + offset);
    workspace = fakeAddress(device, 0x10000 + offset);
  }

  /// Whether both kernels were given what this call asks for.
  bool isSeen() const {
    int64_t tokens = shapeX[0];
    int64_t before = (tokens * 2 + 255) / 256 * 256;
    return seen.x == x.data && seen.y == y.data && seen.tokens == tokens &&
           seen.numChunks == (tokens + 63) / 64 &&
           seen.chunks == static_cast<char *>(workspace) + before;
  }
};

class Known : public RuntimeTest {
protected:
  MappedFunction function;
  MappedCall call;

  void SetUp() override {
    RuntimeTest::SetUp();
    function.prepare(0);
    seen = {};
    fakeWatch([](const char *kernel, void **parameters) {
      if (strcmp(kernel, "first") == 0) {
        ++seen.first;
        seen.x = read<void *>(parameters[1]);
        if (entered) {
          entered->set_value();
          left.wait();
        }
        return;
      }
      ++seen.second;
      seen.chunks = read<void *>(parameters[1]);
      seen.numChunks = read<int64_t>(parameters[2]);
      seen.y = read<void *>(parameters[3]);
      seen.tokens = read<int32_t>(parameters[4]);
    });
  }

  /// Launches, and counts the tensor maps that are encoded.
  int encodes() {
    int before = fakeCount("cuTensorMapEncodeTiled");
    EXPECT_EQ(call.launch(function), GDN_SUCCESS) << message();
    EXPECT_TRUE(call.isSeen()) << call.shapeX[0] << " tokens";
    return fakeCount("cuTensorMapEncodeTiled") - before;
  }

  /// The text of a refusal, by a function that knows the call and one that does
  /// not.
  void refuses(const std::string &text) {
    int launches = fakeCount("cuLaunchKernelEx");
    EXPECT_NE(call.launch(function), GDN_SUCCESS);
    std::string known = message();
    EXPECT_EQ(known.substr(0, text.size()), text);
    MappedFunction another;
    another.prepare(0);
    EXPECT_NE(call.launch(another), GDN_SUCCESS);
    EXPECT_EQ(message(), known);
    EXPECT_EQ(fakeCount("cuLaunchKernelEx"), launches);
  }
};

#endif // GDN_TEST_UNIT_RUNTIME_TESTKNOWNCALLS_H
