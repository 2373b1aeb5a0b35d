//===- Harness.h - Compile and call a tile program --------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TEST_UNIT_TARGET_HARNESS_H
#define GDN_TEST_UNIT_TARGET_HARNESS_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <vector>

/// A dense array of f32 or i32, held as f32.
struct Array {
  Array() = default;
  Array(std::vector<int64_t> shape, std::vector<float> data)
      : shape(std::move(shape)), data(std::move(data)) {}
  /// Seeded values in [-1, 1].
  static Array random(std::vector<int64_t> shape, unsigned seed);

  float at(int64_t i) const { return data[i]; }
  float at(int64_t i, int64_t j) const { return data[i * shape[1] + j]; }

  std::vector<int64_t> shape;
  std::vector<float> data;
};

/// How a test's function is compiled.
struct HarnessOptions {
  int64_t vectorBits = 0;
  bool parallel = false;
};

/// Compiles `text`, calls @f with arrays of f32 (and `boundaries` as a last
/// argument of i32, if there are any) and returns its one result of f32, or
/// reports a failure of the test and returns an empty array.
Array call(llvm::StringRef text, std::vector<Array> arguments,
           int64_t resultRank, HarnessOptions options = {},
           std::vector<int32_t> boundaries = {});

/// A module with a program on the f32 arrays `inputs` and `output` (shapes as
/// in `4x16`), of which @f is a launch with one item. The program's arguments
/// are %x0, %x1, ... and %y; %c0 is there.
std::string makeModule(const std::vector<std::string> &inputs,
                       const std::string &output, const std::string &body);

#endif // GDN_TEST_UNIT_TARGET_HARNESS_H
