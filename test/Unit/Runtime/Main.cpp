//===- Main.cpp - Runs the tests over the fake driver ---------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gtest/gtest.h"

#include <cstdlib>

int main(int argc, char **argv) {
  // The runtime reads both when it opens the driver, which no test has done.
  setenv("GDN_CUDA_DRIVER", GDN_FAKE_DRIVER, /*overwrite=*/1);
  setenv("GDN_RUNTIME_CHECK", "1", /*overwrite=*/1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
