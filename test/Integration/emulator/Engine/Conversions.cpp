//===- Conversions.cpp - Conversions of the lanes of a warp ---------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Engine.h"

#include <cmath>
#include <limits>

using namespace gdn::emulator;

float gdn::emulator::fromF16(uint16_t x) {
  uint32_t sign = uint32_t(x & 0x8000) << 16, exponent = x >> 10 & 31,
           mantissa = x & 0x3FF;
  if (exponent == 31)
    return bits<float>(sign | 0x7F800000 | mantissa << 13);
  if (exponent)
    return bits<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  float value = float(mantissa) * 0x1p-24f;
  return sign ? -value : value;
}

uint16_t gdn::emulator::toF16(double x) {
  uint64_t b = bits<uint64_t>(x);
  uint16_t sign = uint16_t(b >> 48 & 0x8000);
  double size = std::fabs(x);
  if (x != x) {
    uint16_t payload = uint16_t(b >> 42 & 0x3FF);
    return sign | 0x7C00 | (payload ? payload : 1);
  }
  // Half a unit behind the largest value rounds up.
  if (size >= 65520.0)
    return sign | 0x7C00;
  if (size < 0x1p-14) {
    // In units of the least value; adding 2^52 rounds to nearest even.
    double units = size * 0x1p24 + 0x1p52;
    return sign | uint16_t(bits<uint64_t>(units) & 0x7FF);
  }
  b &= ~(uint64_t(1) << 63);
  b += ((uint64_t(1) << 41) - 1) + (b >> 42 & 1);
  return sign | uint16_t((b >> 42) - (uint64_t(1023 - 15) << 10));
}

template <typename D, typename A, D (*function)(A)>
static Status convert(Warp &w, const Instruction &x) {
  const A *a = w.slot<A>(x.a);
  D values[lanes];
  for (int l = 0; l < lanes; ++l)
    values[l] = function(a[l]);
  w.set(x.d, values);
  return Status::Running;
}

template <typename D, typename A> static D cast(A a) { return D(a); }
static uint16_t halfOf(float a) { return toF16(a); }

/// f32 as an integer, rounded by `i` (to nearest even, to zero, down, up); what
/// the type has not is its nearest value, and NaN is 0.
template <typename D>
static Status roundToInteger(Warp &w, const Instruction &x) {
  const float *a = w.slot<float>(x.a);
  // Both bounds, as far as f64 has them.
  const double least = double(std::numeric_limits<D>::min()),
               most = double(std::numeric_limits<D>::max());
  D values[lanes];
  for (int l = 0; l < lanes; ++l) {
    double v = a[l];
    v = x.i == 0   ? std::nearbyint(v)
        : x.i == 1 ? std::trunc(v)
        : x.i == 2 ? std::floor(v)
                   : std::ceil(v);
    values[l] = v != v       ? D(0)
                : v <= least ? std::numeric_limits<D>::min()
                : v >= most  ? std::numeric_limits<D>::max()
                             : D(v);
  }
  w.set(x.d, values);
  return Status::Running;
}

void gdn::emulator::addConversions(Operations &all) {
#define FROM(NAME, T)                                                          \
  {"cvt_f32_" NAME, convert<float, T, cast<float, T>>},                        \
      {"cvt_f64_" NAME, convert<double, T, cast<double, T>>},                  \
      {"cvt_16_" NAME, convert<uint16_t, T, cast<uint16_t, T>>},               \
      {"cvt_32_" NAME, convert<uint32_t, T, cast<uint32_t, T>>},               \
      {"cvt_64_" NAME, convert<uint64_t, T, cast<uint64_t, T>>},
  const Operation table[] = {
      FROM("u16", uint16_t) FROM("s16", int16_t) FROM("u32", uint32_t)
          FROM("s32", int32_t) FROM("u64", uint64_t) FROM("s64", int64_t){
              "cvt_16_s8", convert<uint16_t, int8_t, cast<uint16_t, int8_t>>},
      {"cvt_f64_f32", convert<double, float, cast<double, float>>},
      {"cvt_f32_f64", convert<float, double, cast<float, double>>},
      {"cvt_bf16_f32", convert<uint16_t, float, toBF16>},
      {"cvt_f16_f32", convert<uint16_t, float, halfOf>},
      {"cvt_f32_bf16", convert<float, uint16_t, fromBF16>},
      {"cvt_f32_f16", convert<float, uint16_t, fromF16>},
      {"cvt_u16_f32", roundToInteger<uint16_t>},
      {"cvt_s16_f32", roundToInteger<int16_t>},
      {"cvt_u32_f32", roundToInteger<uint32_t>},
      {"cvt_s32_f32", roundToInteger<int32_t>},
      {"cvt_u64_f32", roundToInteger<uint64_t>},
      {"cvt_s64_f32", roundToInteger<int64_t>}};
  all.insert(all.end(), std::begin(table), std::end(table));
}
