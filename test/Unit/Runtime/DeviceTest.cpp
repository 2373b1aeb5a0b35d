//===- DeviceTest.cpp - Devices, memory and messages ----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestKernel.h"

using Device = RuntimeTest;

TEST_F(Device, Facts) {
  int32_t count = 0;
  ASSERT_EQ(gdnDeviceGetCount(&count), GDN_SUCCESS);
  EXPECT_EQ(count, 2);
  GdnDeviceInfo info;
  info.struct_size = sizeof(info);
  ASSERT_EQ(gdnDeviceGetInfo(1, &info), GDN_SUCCESS);
  EXPECT_EQ(info.device, 1);
  EXPECT_EQ(info.compute_capability, 90);
  EXPECT_EQ(info.multiprocessors, 132);
  EXPECT_EQ(info.shared_bytes, 232448);
  EXPECT_EQ(info.l2_bytes, 62914560);
  EXPECT_STREQ(info.name, "Fake GPU");
}

/// A caller of an older version has a smaller struct.
TEST_F(Device, WritesNoMoreThanTheCallerHas) {
  GdnDeviceInfo info;
  info.struct_size = offsetof(GdnDeviceInfo, multiprocessors);
  info.multiprocessors = -5;
  ASSERT_EQ(gdnDeviceGetInfo(0, &info), GDN_SUCCESS);
  EXPECT_EQ(info.compute_capability, 90);
  EXPECT_EQ(info.multiprocessors, -5);
  EXPECT_EQ(info.struct_size, offsetof(GdnDeviceInfo, multiprocessors));
}

TEST_F(Device, RefusesNull) {
  EXPECT_EQ(gdnDeviceGetCount(nullptr), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(gdnDeviceGetInfo(0, nullptr), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(gdnMemoryAllocate(0, 1, nullptr), GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(gdnMemoryFree(0, nullptr), GDN_SUCCESS);
  EXPECT_EQ(gdnKernelUnload(nullptr), GDN_SUCCESS);
  EXPECT_EQ(gdnKernelPrepare(nullptr, 0), GDN_ERROR_INVALID_ARGUMENT);
}

TEST_F(Device, MemoryIsTheDevices) {
  void *memory = nullptr;
  ASSERT_EQ(gdnMemoryAllocate(1, 64, &memory), GDN_SUCCESS) << message();
  EXPECT_EQ(memory, fakeAddress(1, 0));
  char host[64] = {};
  EXPECT_EQ(gdnMemoryCopyToDevice(1, memory, host, 64), GDN_SUCCESS);
  EXPECT_EQ(gdnMemoryCopyFromDevice(1, host, memory, 64), GDN_SUCCESS);
  EXPECT_EQ(gdnDeviceSynchronize(1), GDN_SUCCESS);
  EXPECT_EQ(gdnMemoryFree(1, memory), GDN_SUCCESS);
  EXPECT_EQ(fakeCount("cuMemFree"), 1);
  EXPECT_EQ(fakeCurrentDevice(), -1);
  fakeFail("cuMemAlloc", 2);
  EXPECT_EQ(gdnMemoryAllocate(0, 64, &memory), GDN_ERROR_DRIVER);
  EXPECT_EQ(message(), "allocating memory on device 0 failed: "
                       "CUDA_ERROR_OTHER (2), other failure");
}

TEST_F(Device, EveryStatusHasItsText) {
  std::vector<std::string> texts;
  for (int i = GDN_SUCCESS; i <= GDN_ERROR_DRIVER; ++i) {
    texts.push_back(gdnStatusGetString(static_cast<GdnRuntimeStatus>(i)));
    for (int j = 0; j < i; ++j)
      EXPECT_NE(texts[i], texts[j]);
    EXPECT_NE(texts[i], "unknown status");
  }
  EXPECT_STREQ(gdnStatusGetString(static_cast<GdnRuntimeStatus>(99)),
               "unknown status");
}

TEST_F(Device, MessagesAreCutAndMayBeNull) {
  std::string longText(1000, 'x');
  gdnSetLastErrorMessage(GDN_ERROR_DRIVER, longText.c_str());
  EXPECT_EQ(message(), std::string(511, 'x'));
  EXPECT_EQ(gdnSetLastErrorMessage(GDN_ERROR_DRIVER, nullptr),
            GDN_ERROR_DRIVER);
  EXPECT_EQ(message(), "");
}

TEST(Version, IsTheHeaders) {
  EXPECT_EQ(gdnRuntimeGetVersion(), unsigned(GDN_RUNTIME_VERSION));
}
