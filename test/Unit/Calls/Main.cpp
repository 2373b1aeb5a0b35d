//===- Main.cpp - The tests of calls, over the fake driver ----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gtest/gtest.h"

#include <cstdlib>

int main(int argc, char **argv) {
  // The runtime reads them when it opens the driver.
  setenv("GDN_CUDA_DRIVER", GDN_FAKE_DRIVER, /*overwrite=*/1);
  setenv("FAKE_CUDA_MISSING", "cuKernelGetParamInfo", /*overwrite=*/1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
