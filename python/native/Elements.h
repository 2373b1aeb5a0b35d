//===- Elements.h - Element types, conversions ------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_ELEMENTS_H
#define GDN_PYTHON_NATIVE_ELEMENTS_H

#include <bit>
#include <cstdint>

/// The numbers of the manifest (gdn/kernels.json), whose tables the build
/// writes as macros: a file defines those that it wants and includes
/// Manifest.inc.
namespace gdn::manifest {
#define GDN_NUMBER(name, value) inline constexpr int64_t name = value;
#include "Manifest.inc"
} // namespace gdn::manifest

namespace gdn::cpu {

/// The types of the manifest, and all others.
enum class Element : uint8_t {
#define GDN_TYPE(key, ...) key,
#include "Manifest.inc"
  Other
};

constexpr int64_t sizeOf(Element element) {
  constexpr int64_t bits[] = {
#define GDN_TYPE(key, name, bits, dlpack) bits,
#include "Manifest.inc"
      0};
  return bits[static_cast<int>(element)] / 8;
}

constexpr const char *nameOf(Element element) {
  constexpr const char *names[] = {
#define GDN_TYPE(key, name, bits, dlpack) name,
#include "Manifest.inc"
      "another type"};
  return names[static_cast<int>(element)];
}

inline float bf16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// To the nearest, ties to even; a NaN stays one.
inline uint16_t floatToBF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value)
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline float f16ToFloat(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) // infinity and NaN
    return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  // The exponent's bias by a multiplication, which serves subnormals too.
  float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | sign);
}

/// To the nearest, ties to even; beyond the range infinity; a NaN stays one.
inline uint16_t floatToF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return sign | 0x7e00;
  if (magnitude >= 0x477ff000) // 65520 and above round to infinity
    return sign | 0x7c00;
  if (magnitude < 0x38800000) { // subnormal: the sum's last bit is 2^-24
    float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(sum) -
                                        std::bit_cast<uint32_t>(0.5f));
  }
  uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return sign | static_cast<uint16_t>((rounded - 0x38000000) >> 13);
}

/// The element at `index` of an array of floats of any type.
inline float loadFloat(const void *data, Element element, int64_t index) {
  if (element == Element::F32)
    return static_cast<const float *>(data)[index];
  uint16_t bits = static_cast<const uint16_t *>(data)[index];
  return element == Element::BF16 ? bf16ToFloat(bits) : f16ToFloat(bits);
}

inline void storeFloat(void *data, Element element, int64_t index,
                       float value) {
  if (element == Element::F32)
    static_cast<float *>(data)[index] = value;
  else
    static_cast<uint16_t *>(data)[index] =
        element == Element::BF16 ? floatToBF16(value) : floatToF16(value);
}

inline int64_t loadInteger(const void *data, Element element, int64_t index) {
  if (element == Element::I32)
    return static_cast<const int32_t *>(data)[index];
  return static_cast<const int64_t *>(data)[index];
}

} // namespace gdn::cpu

#endif // GDN_PYTHON_NATIVE_ELEMENTS_H
