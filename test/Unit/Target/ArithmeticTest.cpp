//===- ArithmeticTest.cpp - Products, sums and functions on tiles ---------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>

/// `%NAME = load of the whole array`.
static std::string load(const std::string &name, const std::string &array,
                        const std::string &shape) {
  bool isMatrix = shape.find('x') != std::string::npos;
  return name + " = gdn_tile.load " + array +
         (isMatrix ? "[%c0, %c0] axes [0, 1]" : "[%c0] axes [0]") +
         " : memref<" + shape + "xf32> -> tensor<" + shape + "xf32>\n";
}

/// Stores the whole result.
static std::string store(const std::string &name, const std::string &shape) {
  bool isMatrix = shape.find('x') != std::string::npos;
  return "gdn_tile.store " + name + ", %y" +
         (isMatrix ? "[%c0, %c0] axes [0, 1]" : "[%c0] axes [0]") +
         " : tensor<" + shape + "xf32> -> memref<" + shape + "xf32>\n";
}

static constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
static constexpr float kInfinity = std::numeric_limits<float>::infinity();

class Arithmetic : public testing::TestWithParam<int64_t> {
protected:
  HarnessOptions getOptions() const { return {GetParam(), false}; }
};

// Sizes that are no multiple of a register tile, the right operand turned, and
// a result that starts from a tile: y = x2 + x0 x1^T.
TEST_P(Arithmetic, Product) {
  Array a = Array::random({24, 40}, 1), b = Array::random({20, 40}, 2),
        c = Array::random({24, 20}, 3);
  std::string body =
      load("%a", "%x0", "24x40") + load("%b", "%x1", "20x40") +
      load("%c", "%x2", "24x20") +
      "%r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(m,k)>, "
      "affine_map<(m,n,k)->(n,k)>, affine_map<(m,n,k)->(m,n)>] ins(%a, %b : "
      "tensor<24x40xf32>, tensor<20x40xf32>) outs(%c : tensor<24x20xf32>) -> "
      "tensor<24x20xf32>\n" +
      store("%r", "24x20");
  Array y = call(makeModule({"24x40", "20x40", "24x20"}, "24x20", body),
                 {a, b, c}, 2, getOptions());
  ASSERT_EQ(y.data.size(), 480u);
  for (int64_t i = 0; i < 24; ++i)
    for (int64_t j = 0; j < 20; ++j) {
      double sum = c.at(i, j);
      for (int64_t k = 0; k < 40; ++k)
        sum += double(a.at(i, k)) * b.at(j, k);
      EXPECT_NEAR(y.at(i, j), sum, 1e-5);
    }
}

// Operands rounded to bf16 multiply exactly; the left one is turned, and the
// sum starts from zero.
TEST_P(Arithmetic, NarrowProduct) {
  Array a = Array::random({32, 16}, 4), b = Array::random({32, 64}, 5);
  std::string body =
      load("%a", "%x0", "32x16") + load("%b", "%x1", "32x64") +
      "%an = arith.truncf %a : tensor<32x16xf32> to tensor<32x16xbf16>\n"
      "%bn = arith.truncf %b : tensor<32x64xf32> to tensor<32x64xbf16>\n"
      "%c = arith.constant dense<0.0> : tensor<16x64xf32>\n"
      "%r = linalg.contract indexing_maps = [affine_map<(m,n,k)->(k,m)>, "
      "affine_map<(m,n,k)->(k,n)>, affine_map<(m,n,k)->(m,n)>] ins(%an, %bn : "
      "tensor<32x16xbf16>, tensor<32x64xbf16>) outs(%c : tensor<16x64xf32>) "
      "-> tensor<16x64xf32>\n" +
      store("%r", "16x64");
  Array y = call(makeModule({"32x16", "32x64"}, "16x64", body), {a, b}, 2,
                 getOptions());
  ASSERT_EQ(y.data.size(), 1024u);
  auto round = [](float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u;
    memcpy(&value, &bits, 4);
    return double(value);
  };
  for (int64_t i = 0; i < 16; ++i)
    for (int64_t j = 0; j < 64; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < 32; ++k)
        sum += round(a.at(k, i)) * round(b.at(k, j));
      EXPECT_NEAR(y.at(i, j), sum, 1e-5);
    }
}

// A matrix times a vector, from either side.
TEST_P(Arithmetic, MatrixVector) {
  Array a = Array::random({24, 40}, 6), x = Array::random({40}, 7);
  auto run = [&](const std::string &map, const std::string &shape,
                 const Array &matrix) {
    std::string body =
        load("%a", "%x0", shape) + load("%v", "%x1", "40") +
        "%c = arith.constant dense<0.0> : tensor<24xf32>\n"
        "%r = linalg.contract indexing_maps = [affine_map<(m,k)->" +
        map +
        ">, affine_map<(m,k)->(k)>, affine_map<(m,k)->(m)>] ins(%a, %v : "
        "tensor<" +
        shape +
        "xf32>, tensor<40xf32>) outs(%c : tensor<24xf32>) -> tensor<24xf32>\n" +
        store("%r", "24");
    return call(makeModule({shape, "40"}, "24", body), {matrix, x}, 1,
                getOptions());
  };
  Array turned({40, 24}, std::vector<float>(960));
  for (int64_t i = 0; i < 24; ++i)
    for (int64_t k = 0; k < 40; ++k)
      turned.data[k * 24 + i] = a.at(i, k);
  Array left = run("(m, k)", "24x40", a),
        right = run("(k, m)", "40x24", turned);
  ASSERT_EQ(left.data.size() + right.data.size(), 48u);
  for (int64_t i = 0; i < 24; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < 40; ++k)
      sum += double(a.at(i, k)) * x.at(k);
    EXPECT_NEAR(left.at(i), sum, 1e-5);
    EXPECT_NEAR(right.at(i), sum, 1e-5);
  }
}

// Sums along both axes of what is computed on the fly.
TEST_P(Arithmetic, Reduction) {
  Array a = Array::random({24, 40}, 8);
  for (bool rows : {true, false}) {
    std::string size = rows ? "24" : "40";
    std::string body =
        load("%a", "%x0", "24x40") +
        "%s = arith.mulf %a, %a : tensor<24x40xf32>\n"
        "%c = arith.constant dense<0.0> : tensor<" +
        size +
        "xf32>\n%r = linalg.reduce { arith.addf } ins(%s : tensor<24x40xf32>) "
        "outs(%c : tensor<" +
        size + "xf32>) dimensions = [" + (rows ? "1" : "0") + "]\n" +
        store("%r", size);
    Array y = call(makeModule({"24x40"}, size, body), {a}, 1, getOptions());
    ASSERT_EQ(y.data.size(), rows ? 24u : 40u);
    for (int64_t i = 0; i < y.shape[0]; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < (rows ? 40 : 24); ++j)
        sum += std::pow(double(rows ? a.at(i, j) : a.at(j, i)), 2);
      EXPECT_NEAR(y.at(i), sum, 1e-5);
    }
  }
}

// Inclusive sums from either end, along rows and columns.
TEST_P(Arithmetic, Scan) {
  Array a = Array::random({8, 48}, 9);
  for (int axis : {0, 1})
    for (bool reverse : {false, true}) {
      std::string body = load("%a", "%x0", "8x48") +
                         "%r = gdn_tile.scan %a axis " + std::to_string(axis) +
                         (reverse ? " reverse" : "") + " : tensor<8x48xf32>\n" +
                         store("%r", "8x48");
      Array y = call(makeModule({"8x48"}, "8x48", body), {a}, 2, getOptions());
      ASSERT_EQ(y.data.size(), 384u);
      for (int64_t i = 0; i < 8; ++i)
        for (int64_t j = 0; j < 48; ++j) {
          double sum = 0;
          for (int64_t l = 0; l < (axis ? 48 : 8); ++l)
            if (reverse ? l >= (axis ? j : i) : l <= (axis ? j : i))
              sum += axis ? a.at(i, l) : a.at(l, j);
          EXPECT_NEAR(y.at(i, j), sum, 1e-5);
        }
    }
}

// NaN above the diagonal does not stay.
TEST_P(Arithmetic, Causal) {
  Array a = Array::random({16, 16}, 10);
  for (int64_t i = 0; i < 16; ++i)
    for (int64_t j = i + 1; j < 16; ++j)
      a.data[i * 16 + j] = kNaN;
  std::string body = load("%a", "%x0", "16x16") +
                     "%r = gdn_tile.causal %a : tensor<16x16xf32>\n" +
                     store("%r", "16x16");
  Array y = call(makeModule({"16x16"}, "16x16", body), {a}, 2, getOptions());
  ASSERT_EQ(y.data.size(), 256u);
  for (int64_t i = 0; i < 16; ++i)
    for (int64_t j = 0; j < 16; ++j)
      EXPECT_EQ(y.at(i, j), j <= i ? a.at(i, j) : 0.0f);
}

// Functions to about 1e-7, and where the kernel leans on it exactly: integers,
// underflow, infinities, NaN.
TEST_P(Arithmetic, Functions) {
  Array a({16},
          {0.0f, 1.0f, -1.0f, 10.0f, -24.0f, 0.37f, -0.91f, -126.5f, -149.0f,
           -151.0f, -1e30f, -kInfinity, kInfinity, 128.0f, kNaN, 1e-4f});
  auto run = [&](const std::string &function) {
    std::string body = load("%a", "%x0", "16") + "%r = math." + function +
                       " %a : tensor<16xf32>\n" + store("%r", "16");
    Array y = call(makeModule({"16"}, "16", body), {a}, 1, getOptions());
    EXPECT_EQ(y.data.size(), 16u);
    y.data.resize(16);
    return y;
  };
  Array exp2 = run("exp2"), exp = run("exp");
  for (int64_t i = 0; i < 16; ++i) {
    SCOPED_TRACE(a.at(i));
    for (auto [got, expected] : {std::pair(exp2.at(i), std::exp2(a.at(i))),
                                 std::pair(exp.at(i), std::exp(a.at(i)))}) {
      if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(got));
      else if (expected < 1e-37f || std::isinf(expected))
        EXPECT_EQ(got, expected);
      else
        EXPECT_NEAR(got / expected, 1.0f, 3e-7f);
    }
  }
  for (int64_t i : {0, 1, 2, 3, 4})
    EXPECT_EQ(exp2.at(i), std::exp2(a.at(i)));

  a = Array({16}, {1.0f, 2.0f, 0.5f, 0.999f, 1.001f, 1e-10f, 1e10f, 3.0f, 0.0f,
                   kInfinity, -1.0f, kNaN, 1e-3f, 7.5f, 1e-30f, 0.75f});
  Array log = run("log"), log2 = run("log2"), log1p = run("log1p");
  for (int64_t i = 0; i < 16; ++i) {
    SCOPED_TRACE(a.at(i));
    for (auto [got, expected] : {std::pair(log.at(i), std::log(a.at(i))),
                                 std::pair(log2.at(i), std::log2(a.at(i))),
                                 std::pair(log1p.at(i), std::log1p(a.at(i)))}) {
      if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(got));
      else if (std::isinf(expected) || expected == 0.0f)
        EXPECT_EQ(got, expected);
      else
        EXPECT_NEAR(got / expected, 1.0f, 1e-6f);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(VectorBits, Arithmetic,
                         testing::Values(128, 256, 512));
