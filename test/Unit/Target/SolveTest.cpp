//===- SolveTest.cpp - The solve of a chunk against double ----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include "gtest/gtest.h"

#include <cmath>

/// Bm of (I + Kk Diag(beta)) Bm = Kk by substitution in double (spec 3.3).
static std::vector<double> solve(const Array &kk, const Array &beta) {
  int64_t size = beta.shape[0];
  std::vector<double> bm(size * size);
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j < size; ++j) {
      double sum = kk.at(i, j);
      for (int64_t l = 0; l < i; ++l)
        sum -= double(kk.at(i, l)) * beta.at(l) * bm[l * size + j];
      bm[i * size + j] = sum;
    }
  return bm;
}

/// Products of unit keys with a common part: cosine about 0.5, as spec 3.6.
static Array makeScores(int64_t size) {
  constexpr int64_t channels = 64;
  Array noise = Array::random({size, channels}, 3);
  Array common = Array::random({1, channels}, 4), kk = noise;
  for (int64_t i = 0; i < size; ++i) {
    double norm = 0;
    for (int64_t c = 0; c < channels; ++c) {
      noise.data[i * channels + c] += common.at(c);
      norm += std::pow(noise.at(i, c), 2);
    }
    for (int64_t c = 0; c < channels; ++c)
      noise.data[i * channels + c] /= std::sqrt(norm);
  }
  kk = Array({size, size}, std::vector<float>(size * size));
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j < i; ++j)
      for (int64_t c = 0; c < channels; ++c)
        kk.data[i * size + j] += noise.at(i, c) * noise.at(j, c);
  return kk;
}

/// Size of the chunk, type of the merges, and the error that it may have.
struct SolveCase {
  int64_t size;
  const char *mergeType;
  double tolerance;
};

class Solve : public testing::TestWithParam<SolveCase> {};

TEST_P(Solve, MatchesSubstitution) {
  auto [size, mergeType, tolerance] = GetParam();
  std::string side = std::to_string(size), square = side + "x" + side;
  std::string body = "%kk = gdn_tile.load %x0[%c0, %c0] axes [0, 1] : memref<" +
                     square + "xf32> -> tensor<" + square + "xf32>\n" +
                     "%b = gdn_tile.load %x1[%c0] axes [0] : memref<" + side +
                     "xf32> -> tensor<" + side + "xf32>\n" +
                     "%r = gdn_tile.solve %kk, %b merge " + mergeType +
                     " : tensor<" + square + "xf32>, tensor<" + side +
                     "xf32>\n" +
                     "gdn_tile.store %r, %y[%c0, %c0] axes [0, 1] : tensor<" +
                     square + "xf32> -> memref<" + square + "xf32>\n";
  Array kk = makeScores(size), beta = Array::random({size}, 5);
  for (float &value : beta.data)
    value = std::abs(value);
  Array bm = call(makeModule({square, side}, square, body), {kk, beta}, 2);
  std::vector<double> expected = solve(kk, beta);
  ASSERT_EQ(bm.data.size(), expected.size());
  double error = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    error = std::max(error, std::abs(bm.data[i] - expected[i]));
  EXPECT_LT(error, tolerance);
  // f16 merges that were exact would be no f16 merges.
  if (size > 16 && std::string(mergeType) == "f16")
    EXPECT_GT(error, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, Solve,
    testing::Values(SolveCase{8, "f32", 1e-6}, SolveCase{16, "f16", 1e-6},
                    SolveCase{32, "f32", 1e-6}, SolveCase{32, "f16", 1e-3},
                    SolveCase{64, "f32", 2e-6}, SolveCase{64, "bf16", 6e-3},
                    SolveCase{64, "f16", 1e-3}));
