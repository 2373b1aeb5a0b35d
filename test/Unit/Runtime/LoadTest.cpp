//===- LoadTest.cpp - Loading, sharing and preparing kernels --------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestKernel.h"

#include <functional>
#include <thread>

using Load = RuntimeTest;

/// One library serves all devices; each device is prepared once.
TEST_F(Load, LoadsOnceAndPreparesOnceADevice) {
  TestDesc test;
  GdnKernel *kernel = load(test);
  ASSERT_NE(kernel, nullptr) << message();
  for (int round = 0; round < 2; ++round)
    for (int device : {0, 1})
      ASSERT_EQ(gdnKernelPrepare(kernel, device), GDN_SUCCESS) << message();
  EXPECT_EQ(fakeCount("cuLibraryLoadData"), 1);
  EXPECT_EQ(fakeCount("cuKernelGetFunction"), 2);
  EXPECT_EQ(fakeCount("cuFuncLoad"), 2);
  EXPECT_EQ(fakeCount("cuKernelSetAttribute"), 2);
  EXPECT_EQ(fakeCurrentDevice(), -1) << "prepare left its context current";
}

/// Code that loads its table on every call must get the one handle.
TEST_F(Load, SameDescriptionSameHandle) {
  TestDesc test;
  GdnKernel *first = nullptr, *second = nullptr;
  ASSERT_EQ(gdnKernelLoad(&test.desc, &first), GDN_SUCCESS);
  ASSERT_EQ(gdnKernelLoad(&test.desc, &second), GDN_SUCCESS);
  EXPECT_EQ(first, second);
  EXPECT_EQ(fakeCount("cuLibraryLoadData"), 1);
  EXPECT_EQ(gdnKernelUnload(first), GDN_SUCCESS);
  EXPECT_EQ(fakeCount("cuLibraryUnload"), 0) << "one load is still in use";
  EXPECT_EQ(gdnKernelUnload(second), GDN_SUCCESS);
  EXPECT_EQ(fakeCount("cuLibraryUnload"), 1);
  EXPECT_EQ(gdnKernelUnload(second), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "expected a loaded kernel, got one that is not");
}

TEST_F(Load, KernelsOfOneImageShareIt) {
  TestDesc one, two;
  two.desc.symbol = "other";
  GdnKernel *first = nullptr, *second = nullptr;
  ASSERT_EQ(gdnKernelLoad(&one.desc, &first), GDN_SUCCESS);
  ASSERT_EQ(gdnKernelLoad(&two.desc, &second), GDN_SUCCESS);
  EXPECT_NE(first, second);
  EXPECT_EQ(fakeCount("cuLibraryLoadData"), 1);
  EXPECT_EQ(gdnKernelUnload(first), GDN_SUCCESS);
  EXPECT_EQ(fakeCount("cuLibraryUnload"), 0);
  EXPECT_EQ(gdnKernelUnload(second), GDN_SUCCESS);
  EXPECT_EQ(fakeCount("cuLibraryUnload"), 1);
}

TEST_F(Load, ThreadsRaceForOneLoad) {
  TestDesc test;
  GdnKernel *handles[8] = {};
  std::vector<std::thread> threads;
  for (GdnKernel *&handle : handles)
    threads.emplace_back([&test, &handle] {
      if (gdnKernelLoad(&test.desc, &handle) == GDN_SUCCESS)
        for (int device : {0, 1})
          EXPECT_EQ(gdnKernelPrepare(handle, device), GDN_SUCCESS);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(fakeCount("cuLibraryLoadData"), 1);
  EXPECT_EQ(fakeCount("cuFuncLoad"), 2);
  for (GdnKernel *handle : handles) {
    EXPECT_EQ(handle, handles[0]);
    EXPECT_EQ(gdnKernelUnload(handle), GDN_SUCCESS);
  }
  EXPECT_EQ(fakeCount("cuLibraryUnload"), 1);
}

TEST_F(Load, RefusesOtherChips) {
  TestDesc test;
  test.desc.compute_capability = 100;
  EXPECT_EQ(load(test), nullptr);
  EXPECT_EQ(message(), "expected a device of compute capability 10.0 for "
                       "kernel 'attend', got 9.0 (device 0, Fake GPU)");
  EXPECT_EQ(fakeCount("cuLibraryLoadData"), 0);
}

TEST_F(Load, RefusesTooMuchSharedMemory) {
  TestDesc test;
  test.desc.shared_bytes = 232449;
  EXPECT_EQ(gdnKernelPrepare(load(test), 0), GDN_ERROR_UNSUPPORTED_DEVICE);
  EXPECT_EQ(message(), "expected 232449 bytes of shared memory for kernel "
                       "'attend', got a device with 232448");
}

TEST_F(Load, RefusesDevicesThatAreNotThere) {
  TestDesc test;
  for (int device : {-1, 2}) {
    EXPECT_EQ(gdnKernelPrepare(load(test), device), GDN_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(message(),
              "expected a device from 0 to 1, got " + std::to_string(device));
  }
}

/// After a failure nothing stays loaded, and the next try may succeed.
TEST_F(Load, FailedLoadLeavesNothing) {
  TestDesc test;
  fakeFail("cuLibraryLoadData", 209);
  EXPECT_EQ(load(test), nullptr);
  EXPECT_EQ(message(), "loading the image of kernel 'attend' failed: "
                       "CUDA_ERROR_OTHER (209), other failure");
  fakeFail("cuLibraryLoadData", 0);
  test.desc.symbol = "missing";
  EXPECT_EQ(load(test), nullptr);
  EXPECT_EQ(message(), "finding kernel 'missing' failed: CUDA_ERROR_OTHER "
                       "(500), other failure");
  EXPECT_EQ(fakeCount("cuLibraryUnload"), 1);
  test.desc.symbol = "attend";
  EXPECT_NE(load(test), nullptr) << message();
}

TEST_F(Load, FailedPrepareIsNotPrepared) {
  TestDesc test;
  GdnKernel *kernel = load(test);
  fakeFail("cuFuncLoad", 2);
  EXPECT_EQ(gdnKernelPrepare(kernel, 0), GDN_ERROR_DRIVER);
  EXPECT_EQ(message(), "preparing kernel 'attend' on device 0 failed: "
                       "CUDA_ERROR_OTHER (2), other failure");
  EXPECT_EQ(fakeCurrentDevice(), -1);
  fakeFail("cuFuncLoad", 0);
  EXPECT_EQ(gdnKernelPrepare(kernel, 0), GDN_SUCCESS);
}

/// A table that does not fit its image is found before any launch.
TEST_F(Load, ComparesTheParametersWithTheImage) {
  TestDesc test;
  GdnKernel *kernel = load(test);
  FakeParam other[8];
  std::copy(std::begin(params), std::end(params), other);
  other[2].bytes = 16;
  fakeSetParams(other, 8);
  EXPECT_EQ(gdnKernelPrepare(kernel, 0), GDN_ERROR_INVALID_KERNEL);
  EXPECT_EQ(message(), "expected parameter 2 of kernel 'attend' of 4 bytes, "
                       "got 16 in its image");
  fakeSetParams(params, 7);
  EXPECT_EQ(gdnKernelPrepare(kernel, 0), GDN_ERROR_INVALID_KERNEL);
  EXPECT_EQ(message(),
            "expected 8 parameters of kernel 'attend', got 7 in its image");
  // GDN_RUNTIME_CHECK=1 of this program looks for more, too.
  TestDesc fewer;
  fewer.desc.num_params = 7;
  fakeSetParams(params, 8);
  EXPECT_EQ(gdnKernelPrepare(load(fewer), 0), GDN_ERROR_INVALID_KERNEL);
  EXPECT_EQ(message(),
            "expected 7 parameters of kernel 'attend', got 8 in its image");
}

TEST_F(Load, RefusesOtherVersions) {
  TestDesc test;
  test.desc.version += 1;
  GdnKernel *kernel;
  EXPECT_EQ(gdnKernelLoad(&test.desc, &kernel), GDN_ERROR_VERSION);
  EXPECT_EQ(kernel, nullptr);
  test.desc.version -= 1;
  test.desc.struct_size = 8;
  EXPECT_EQ(gdnKernelLoad(&test.desc, &kernel), GDN_ERROR_VERSION);
  EXPECT_EQ(gdnKernelLoad(nullptr, &kernel), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(gdnKernelLoad(&test.desc, nullptr), GDN_ERROR_INVALID_ARGUMENT);
}

/// Each way in which a table can contradict itself.
TEST_F(Load, RefusesBrokenDescriptions) {
  static const int64_t unknownSymbol[] = {GDN_SYMBOL(2), 1, 128};
  struct Case {
    const char *message;
    std::function<void(TestDesc &)> change;
  };
  const Case cases[] = {
      {"expected a symbol", [](TestDesc &t) { t.desc.symbol = nullptr; }},
      {"got neither", [](TestDesc &t) { t.desc.image = nullptr; }},
      {"got neither", [](TestDesc &t) { t.desc.image_bytes -= 1; }},
      {"1 to 1024 threads, got 0", [](TestDesc &t) { t.desc.threads = 0; }},
      {"8 blocks, got 16", [](TestDesc &t) { t.desc.cluster_size = 16; }},
      {"32 resident blocks, got 33",
       [](TestDesc &t) { t.desc.resident_blocks = 33; }},
      {"64 arguments, got 65", [](TestDesc &t) { t.desc.num_args = 65; }},
      {"128 parameters, got -1", [](TestDesc &t) { t.desc.num_params = -1; }},
      {"tensor maps, got 1", [](TestDesc &t) { t.desc.tensor_maps = nullptr; }},
      {"symbols, got 41", [](TestDesc &t) { t.desc.num_symbols = 41; }},
      {"name of argument 0", [](TestDesc &t) { t.args[0].name = nullptr; }},
      {"kind of argument 'n'", [](TestDesc &t) { t.args[3].kind = 0; }},
      {"dtype of 'q', got 9", [](TestDesc &t) { t.args[0].dtype = 9; }},
      {"rank 0 to 8 of 'q', got 9", [](TestDesc &t) { t.args[0].rank = 9; }},
      {"2 symbols in 'q', got 2",
       [](TestDesc &t) { t.args[0].shape = unknownSymbol; }},
      {"power of two", [](TestDesc &t) { t.args[1].alignment = 12; }},
      {"parameter 1 to name", [](TestDesc &t) { t.params[1].index = 2; }},
      {"parameter 2 to name", [](TestDesc &t) { t.params[2].dim = 3; }},
      {"parameter 4 to name", [](TestDesc &t) { t.params[4].index = 0; }},
      {"parameter 0 to name", [](TestDesc &t) { t.params[0].index = 1; }},
      {"parameter 7 to name", [](TestDesc &t) { t.params[7].kind = 9; }},
      {"tensor map 0 over", [](TestDesc &t) { t.map.arg = 2; }},
      {"got argument 0, rank 6", [](TestDesc &t) { t.map.rank = 6; }},
      {"swizzle 4", [](TestDesc &t) { t.map.swizzle = 4; }},
      {"box 257", [](TestDesc &t) { t.dims[1].box = 257; }},
      {"step 0", [](TestDesc &t) { t.dims[1].step = 0; }},
      {"innermost one", [](TestDesc &t) { t.dims[0].dim = 1; }},
      {"got 14 bytes", [](TestDesc &t) { t.dims[0].box = 7; }},
      {"got 128 bytes", [](TestDesc &t) { t.map.swizzle = GDN_SWIZZLE_64B; }},
  };
  for (const Case &c : cases) {
    TestDesc test;
    c.change(test);
    EXPECT_EQ(load(test), nullptr) << c.message;
    EXPECT_NE(message().find(c.message), std::string::npos) << message();
  }
  EXPECT_EQ(fakeCount("cuLibraryLoadData"), 0);
}

TEST_F(Load, RefusesTooManyBytesOfParameters) {
  TestDesc test;
  std::vector<GdnParamDesc> params(33, {GDN_PARAM_TENSOR_MAP, 0, 0, 0});
  test.desc.params = params.data();
  test.desc.num_params = 33;
  EXPECT_EQ(load(test), nullptr);
  EXPECT_EQ(message(), "kernel 'attend': expected at most 4096 bytes of "
                       "parameters, got 4224 up to parameter 32");
}
