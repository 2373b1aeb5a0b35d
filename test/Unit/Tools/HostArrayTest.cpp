//===- HostArrayTest.cpp - Rounding and storage of host arrays ------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Tools/HostArray.h"

#include "llvm/ADT/APFloat.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

using namespace mlir::gdn::tools;
using llvm::APFloat;

/// LLVM's own rounding of a double.
static double roundWithLLVM(const llvm::fltSemantics &format, double value) {
  APFloat number(value);
  bool losesInfo;
  number.convert(format, APFloat::rmNearestTiesToEven, &losesInfo);
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return number.convertToDouble();
}

/// Values of every size, with ties and neighbours of ties among them.
static std::vector<double> makeValues() {
  std::vector<double> values = {0,     -0.0,  1,      65504,   65519.9,
                                65520, 65536, 3.4e38, 3.39e38, -1e-45};
  for (int exponent = -160; exponent <= 140; ++exponent)
    for (int i = 0; i < 40; ++i) {
      double value = std::ldexp(1 + i / 32.0 + i / 2048.0, exponent);
      values.insert(values.end(),
                    {value, -std::nextafter(value, 0),
                     std::nextafter(value, 1e300),
                     std::ldexp(1 + (2 * i + 1) / 256.0, exponent),
                     std::ldexp(1 + (2 * i + 1) / 2048.0, exponent)});
    }
  return values;
}

TEST(HostArray, RoundsLikeLLVM) {
  for (double value : makeValues()) {
    EXPECT_EQ(roundTo(Element::BF16, value),
              roundWithLLVM(APFloat::BFloat(), value))
        << value;
    EXPECT_EQ(roundTo(Element::F16, value),
              roundWithLLVM(APFloat::IEEEhalf(), value))
        << value;
    EXPECT_EQ(roundTo(Element::F32, value),
              roundWithLLVM(APFloat::IEEEsingle(), value))
        << value;
  }
}

TEST(HostArray, StoresWhatItRounded) {
  std::vector<double> values = makeValues();
  for (Element element : {Element::BF16, Element::F16, Element::F32}) {
    HostArray array(element, {static_cast<int64_t>(values.size())}, values);
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(array[i], roundTo(element, values[i])) << values[i];
  }
}

TEST(HostArray, HasTheBitsOfTheFormat) {
  HostArray half(Element::F16, {2}, {1.5, -std::ldexp(1.0, -24)});
  EXPECT_EQ(std::string(half.data(), 4), std::string("\x00\x3e\x01\x80", 4));
  HostArray brain(Element::BF16, {1}, {-2.0});
  EXPECT_EQ(std::string(brain.data(), 2), std::string("\x00\xc0", 2));
}

TEST(HostArray, KeepsNaNAndInfinity) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (Element element : {Element::BF16, Element::F16, Element::F32}) {
    HostArray array(element, {3}, {std::nan(""), infinity, -infinity});
    EXPECT_TRUE(std::isnan(array[0]));
    EXPECT_EQ(array[1], infinity);
    EXPECT_EQ(array[2], -infinity);
  }
}

TEST(HostArray, CountsElementsThatFit) {
  EXPECT_EQ(countElements({2, 3, 4}), 24);
  EXPECT_EQ(countElements({}), 1);
  EXPECT_EQ(countElements({5, 0, 1}), 0);
  EXPECT_EQ(countElements({-1}), std::nullopt);
  EXPECT_EQ(countElements({int64_t(1) << 40, int64_t(1) << 40}), std::nullopt);
}
