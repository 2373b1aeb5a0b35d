//===- HostArray.cpp - Arrays on the host ---------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Tools/HostArray.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tools;

namespace {
/// What rounding needs to know of a binary floating-point format.
struct Format {
  int mantissaBits;
  /// Exponent, as frexp counts it, of the smallest normal number.
  int minExponent;
  /// Exponent of the largest finite number.
  int maxExponent;
};
constexpr Format bf16Format = {8, -125, 128};
constexpr Format f16Format = {11, -13, 16};
} // namespace

llvm::StringRef tools::name(Element element) {
  switch (element) {
  case Element::F32:
    return "f32";
  case Element::BF16:
    return "bf16";
  case Element::F16:
    return "f16";
  case Element::I8:
    return "i8";
  case Element::I32:
    return "i32";
  case Element::I64:
    return "i64";
  }
  llvm_unreachable("covered switch");
}

int64_t tools::byteSize(Element element) {
  switch (element) {
  case Element::F32:
  case Element::I32:
    return 4;
  case Element::BF16:
  case Element::F16:
    return 2;
  case Element::I8:
    return 1;
  case Element::I64:
    return 8;
  }
  llvm_unreachable("covered switch");
}

std::optional<Element> tools::elementOf(Type type) {
  if (type.isF32())
    return Element::F32;
  if (type.isBF16())
    return Element::BF16;
  if (type.isF16())
    return Element::F16;
  if (type.isSignlessInteger(8))
    return Element::I8;
  if (type.isSignlessInteger(32))
    return Element::I32;
  if (type.isSignlessInteger(64))
    return Element::I64;
  return std::nullopt;
}

/// Rounds once, to nearest even: by way of float it would be twice.
static double roundToFormat(const Format &format, double value) {
  if (value == 0 || !std::isfinite(value))
    return value;
  int exponent;
  std::frexp(value, &exponent);
  int unit = std::max(exponent, format.minExponent) - format.mantissaBits;
  double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
  double limit = std::ldexp(1.0, format.maxExponent);
  if (std::abs(rounded) >= limit)
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  return rounded;
}

double tools::roundTo(Element element, double value) {
  switch (element) {
  case Element::F32:
    return static_cast<float>(value);
  case Element::BF16:
    return roundToFormat(bf16Format, value);
  case Element::F16:
    return roundToFormat(f16Format, value);
  case Element::I8:
  case Element::I32:
  case Element::I64:
    return std::nearbyint(value);
  }
  llvm_unreachable("covered switch");
}

std::string tools::describe(llvm::ArrayRef<int64_t> shape) {
  if (shape.empty())
    return "scalar";
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleave(
      shape, os,
      [&](int64_t size) {
        if (ShapedType::isDynamic(size))
          os << '?';
        else
          os << size;
      },
      "x");
  return text;
}

std::optional<int64_t> tools::countElements(llvm::ArrayRef<int64_t> shape) {
  // Larger than any memory, small enough that byte counts do not overflow.
  constexpr int64_t limit = int64_t(1) << 48;
  int64_t count = 1;
  for (int64_t size : shape) {
    if (size < 0 || (size > 0 && count > limit / size))
      return std::nullopt;
    count *= size;
  }
  return count;
}

HostArray::HostArray(Element element, llvm::ArrayRef<int64_t> shape)
    : element(element), shape(shape), count(countElements(shape).value_or(0)),
      bytes(count * byteSize(element)) {}

HostArray::HostArray(Element element, llvm::ArrayRef<int64_t> shape,
                     llvm::ArrayRef<double> values)
    : HostArray(element, shape) {
  for (int64_t i = 0, e = std::min<int64_t>(count, values.size()); i < e; ++i)
    set(i, values[i]);
}

/// The value of 16 bits of bf16.
static double decodeBF16(uint16_t bits) {
  uint32_t wide = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

/// The value of 16 bits of f16.
static double decodeF16(uint16_t bits) {
  int exponent = (bits >> 10) & 0x1f;
  int mantissa = bits & 0x3ff;
  double value;
  if (exponent == 0x1f)
    value = mantissa ? std::numeric_limits<double>::quiet_NaN()
                     : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    value = std::ldexp(mantissa, -24);
  else
    value = std::ldexp(mantissa + 0x400, exponent - 25);
  return bits & 0x8000 ? -value : value;
}

/// The bits of a value that is already rounded to bf16.
static uint16_t encodeBF16(double value) {
  float narrow = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &narrow, sizeof(bits));
  // A NaN whose payload is all in the low half must stay a NaN.
  if (std::isnan(value))
    bits |= 0x400000;
  return bits >> 16;
}

/// The bits of a value that is already rounded to f16.
static uint16_t encodeF16(double value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value))
    return sign | 0x7e00;
  if (std::isinf(value))
    return sign | 0x7c00;
  if (value == 0)
    return sign;
  int exponent;
  std::frexp(value, &exponent);
  double magnitude = std::abs(value);
  if (exponent < f16Format.minExponent)
    return sign | static_cast<uint16_t>(std::ldexp(magnitude, 24));
  auto mantissa = static_cast<uint16_t>(std::ldexp(magnitude, 11 - exponent));
  return sign | ((exponent + 14) << 10) | (mantissa & 0x3ff);
}

template <typename T> static T loadAs(const char *bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T> static void storeAs(char *bytes, int64_t index, T value) {
  std::memcpy(bytes + index * sizeof(T), &value, sizeof(T));
}

double HostArray::operator[](int64_t index) const {
  switch (element) {
  case Element::F32:
    return loadAs<float>(data(), index);
  case Element::BF16:
    return decodeBF16(loadAs<uint16_t>(data(), index));
  case Element::F16:
    return decodeF16(loadAs<uint16_t>(data(), index));
  case Element::I8:
    return loadAs<int8_t>(data(), index);
  case Element::I32:
    return loadAs<int32_t>(data(), index);
  case Element::I64:
    return loadAs<int64_t>(data(), index);
  }
  llvm_unreachable("covered switch");
}

void HostArray::set(int64_t index, double value) {
  double rounded = roundTo(element, value);
  switch (element) {
  case Element::F32:
    return storeAs(data(), index, static_cast<float>(rounded));
  case Element::BF16:
    return storeAs(data(), index, encodeBF16(rounded));
  case Element::F16:
    return storeAs(data(), index, encodeF16(rounded));
  case Element::I8:
    return storeAs(data(), index, static_cast<int8_t>(rounded));
  case Element::I32:
    return storeAs(data(), index, static_cast<int32_t>(rounded));
  case Element::I64:
    return storeAs(data(), index, static_cast<int64_t>(rounded));
  }
  llvm_unreachable("covered switch");
}

std::vector<double> HostArray::toDoubles() const {
  std::vector<double> values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = (*this)[i];
  return values;
}

bool HostArray::operator==(const HostArray &other) const {
  return element == other.element && shape == other.shape &&
         bytes == other.bytes;
}
