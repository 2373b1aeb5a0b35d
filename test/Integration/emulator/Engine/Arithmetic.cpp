//===- Arithmetic.cpp - Arithmetic on the lanes of a warp -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Engine.h"

#include <cmath>

using namespace gdn::emulator;

namespace {
using U16 = uint16_t;
using U32 = uint32_t;
using U64 = uint64_t;
using S16 = int16_t;
using S32 = int32_t;
using S64 = int64_t;

/// Computes into an array of its own, which compilers make vectors of.
template <typename D, typename A, D (*function)(A)>
Status unary(Warp &w, const Instruction &x) {
  const A *a = w.slot<A>(x.a);
  D values[lanes];
  for (int l = 0; l < lanes; ++l)
    values[l] = function(a[l]);
  w.set(x.d, values);
  return Status::Running;
}

template <typename D, typename A, typename B, D (*function)(A, B)>
Status binary(Warp &w, const Instruction &x) {
  const A *a = w.slot<A>(x.a);
  const B *b = w.slot<B>(x.b);
  D values[lanes];
  for (int l = 0; l < lanes; ++l)
    values[l] = function(a[l], b[l]);
  w.set(x.d, values);
  return Status::Running;
}

template <typename D, typename A, typename C, D (*function)(A, A, C)>
Status ternary(Warp &w, const Instruction &x) {
  const A *a = w.slot<A>(x.a), *b = w.slot<A>(x.b);
  const C *c = w.slot<C>(x.c);
  D values[lanes];
  for (int l = 0; l < lanes; ++l)
    values[l] = function(a[l], b[l], c[l]);
  w.set(x.d, values);
  return Status::Running;
}
} // namespace

//===----------------------------------------------------------------------===//
// Functions of one lane
//===----------------------------------------------------------------------===//

// A name, the types of the result and the operands, and the value.
#define UNARY(X)                                                               \
  X(neg_f32, U32, U32, a ^ 0x80000000)                                         \
  X(abs_f32, U32, U32, a & 0x7FFFFFFF)                                         \
  X(ex2_f32, float, float, exp2f(a))                                           \
  X(lg2_f32, float, float, log2f(a))                                           \
  X(rcp_f32, float, float, 1.0f / a)                                           \
  X(rsqrt_f32, float, float, 1.0f / sqrtf(a))                                  \
  X(sqrt_f32, float, float, sqrtf(a))                                          \
  X(tanh_f32, float, float, tanhf(a))                                          \
  X(neg_f64, U64, U64, a ^ (U64(1) << 63))                                     \
  X(abs_f64, U64, U64, a & ~(U64(1) << 63))                                    \
  X(mov_16, U16, U16, a)                                                       \
  X(mov_32, U32, U32, a)                                                       \
  X(mov_64, U64, U64, a)                                                       \
  X(low_32, U16, U32, U16(a))                                                  \
  X(high_32, U16, U32, U16(a >> 16))                                           \
  X(low_64, U32, U64, U32(a))                                                  \
  X(high_64, U32, U64, U32(a >> 32))                                           \
  X(not_16, U16, U16, U16(~a))                                                 \
  X(not_32, U32, U32, ~a)                                                      \
  X(not_64, U64, U64, ~a)                                                      \
  X(neg_16, U16, U16, U16(-a))                                                 \
  X(neg_32, U32, U32, -a)                                                      \
  X(neg_64, U64, U64, -a)                                                      \
  X(abs_s16, U16, U16, U16(S16(a) < 0 ? -a : a))                               \
  X(abs_s32, U32, U32, S32(a) < 0 ? -a : a)                                    \
  X(abs_s64, U64, U64, S64(a) < 0 ? -a : a)                                    \
  X(neg_pair, U32, U32, a ^ 0x80008000)                                        \
  X(abs_pair, U32, U32, a & 0x7FFF7FFF)                                        \
  X(popc_32, U32, U32, U32(__builtin_popcount(a)))                             \
  X(clz_32, U32, U32, a ? U32(__builtin_clz(a)) : 32)                          \
  X(brev_32, U32, U32, reverse(a))

#define BINARY(X)                                                              \
  X(add_f32, float, float, a + b)                                              \
  X(sub_f32, float, float, a - b)                                              \
  X(mul_f32, float, float, a *b)                                               \
  X(div_f32, float, float, a / b)                                              \
  X(max_f32, float, float, b != b || a > b ? a : b)                            \
  X(min_f32, float, float, b != b || a < b ? a : b)                            \
  X(maxnan_f32, float, float, a != a || a >= b ? a : b)                        \
  X(minnan_f32, float, float, a != a || a <= b ? a : b)                        \
  X(add_f64, double, double, a + b)                                            \
  X(sub_f64, double, double, a - b)                                            \
  X(mul_f64, double, double, a *b)                                             \
  X(div_f64, double, double, a / b)                                            \
  X(max_f64, double, double, b != b || a > b ? a : b)                          \
  X(min_f64, double, double, b != b || a < b ? a : b)                          \
  X(add_16, U16, U16, U16(a + b))                                              \
  X(add_32, U32, U32, a + b)                                                   \
  X(add_64, U64, U64, a + b)                                                   \
  X(sub_16, U16, U16, U16(a - b))                                              \
  X(sub_32, U32, U32, a - b)                                                   \
  X(sub_64, U64, U64, a - b)                                                   \
  X(mul_16, U16, U16, U16(U32(a) * b))                                         \
  X(mul_32, U32, U32, a *b)                                                    \
  X(mul_64, U64, U64, a *b)                                                    \
  X(and_16, U16, U16, U16(a &b))                                               \
  X(and_32, U32, U32, a &b)                                                    \
  X(and_64, U64, U64, a &b)                                                    \
  X(or_16, U16, U16, U16(a | b))                                               \
  X(or_32, U32, U32, a | b)                                                    \
  X(or_64, U64, U64, a | b)                                                    \
  X(xor_16, U16, U16, U16(a ^ b))                                              \
  X(xor_32, U32, U32, a ^ b)                                                   \
  X(xor_64, U64, U64, a ^ b)                                                   \
  X(min_u16, U16, U16, a < b ? a : b)                                          \
  X(min_s16, S16, S16, a < b ? a : b)                                          \
  X(min_u32, U32, U32, a < b ? a : b)                                          \
  X(min_s32, S32, S32, a < b ? a : b)                                          \
  X(min_u64, U64, U64, a < b ? a : b)                                          \
  X(min_s64, S64, S64, a < b ? a : b)                                          \
  X(max_u16, U16, U16, a > b ? a : b)                                          \
  X(max_s16, S16, S16, a > b ? a : b)                                          \
  X(max_u32, U32, U32, a > b ? a : b)                                          \
  X(max_s32, S32, S32, a > b ? a : b)                                          \
  X(max_u64, U64, U64, a > b ? a : b)                                          \
  X(max_s64, S64, S64, a > b ? a : b)                                          \
  X(mul_hi_u32, U32, U32, U32(U64(a) * b >> 32))                               \
  X(mul_hi_s32, S32, S32, S32(S64(a) * b >> 32))                               \
  X(mul_hi_u64, U64, U64, U64((unsigned __int128)(a) * b >> 64))               \
  X(mul_wide_u16, U32, U16, U32(a) * b)                                        \
  X(mul_wide_u32, U64, U32, U64(a) * b)                                        \
  X(mul_wide_s32, S64, S32, S64(a) * b)                                        \
  X(pack_32, U32, U16, U32(b) << 16 | a)                                       \
  X(pack_64, U64, U32, U64(b) << 32 | a)                                       \
  X(pack_bf16, U32, float, U32(toBF16(a)) << 16 | toBF16(b))                   \
  X(pack_f16, U32, float, U32(toF16(a)) << 16 | toF16(b))                      \
  X(add_f16x2, U32, U32, (halves<add>(a, b, 0)))                               \
  X(sub_f16x2, U32, U32, (halves<sub>(a, b, 0)))                               \
  X(mul_f16x2, U32, U32, (halves<mul>(a, b, 0)))                               \
  X(max_f16x2, U32, U32, (halves<max>(a, b, 0)))                               \
  X(min_f16x2, U32, U32, (halves<min>(a, b, 0)))                               \
  X(add_bf16x2, U32, U32, (brains<add>(a, b, 0)))                              \
  X(sub_bf16x2, U32, U32, (brains<sub>(a, b, 0)))                              \
  X(mul_bf16x2, U32, U32, (brains<mul>(a, b, 0)))                              \
  X(max_bf16x2, U32, U32, (brains<max>(a, b, 0)))                              \
  X(min_bf16x2, U32, U32, (brains<min>(a, b, 0)))

// PTX clamps shifts at the width.
#define SHIFTS(X)                                                              \
  X(shl_16, U16, U16(b < 16 ? a << b : 0))                                     \
  X(shl_32, U32, b < 32 ? a << b : 0)                                          \
  X(shl_64, U64, b < 64 ? a << b : 0)                                          \
  X(shr_u16, U16, U16(b < 16 ? a >> b : 0))                                    \
  X(shr_u32, U32, b < 32 ? a >> b : 0)                                         \
  X(shr_u64, U64, b < 64 ? a >> b : 0)                                         \
  X(shr_s16, S16, S16(a >> (b < 15 ? b : 15)))                                 \
  X(shr_s32, S32, a >> (b < 31 ? b : 31))                                      \
  X(shr_s64, S64, a >> (b < 63 ? b : 63))

// The third operand has a type of its own.
#define TERNARY(X)                                                             \
  X(fma_f32, float, float, float, float(double(a) * b + c))                    \
  X(fma_f64, double, double, double, std::fma(a, b, c))                        \
  X(mad_16, U16, U16, U16, U16(U32(a) * b + c))                                \
  X(mad_32, U32, U32, U32, a *b + c)                                           \
  X(mad_64, U64, U64, U64, a *b + c)                                           \
  X(mad_wide_u32, U64, U32, U64, U64(a) * b + c)                               \
  X(mad_wide_s32, U64, S32, U64, U64(S64(a) * b) + c)                          \
  X(bfe_u32, U32, U32, U32, (bitField<false>(a, b, c)))                        \
  X(bfe_s32, U32, U32, U32, (bitField<true>(a, b, c)))                         \
  X(fma_f16x2, U32, U32, U32, (halves<fused>(a, b, c)))                        \
  X(fma_bf16x2, U32, U32, U32, (brains<fused>(a, b, c)))

static U32 reverse(U32 a) {
  U32 result = 0;
  for (int i = 0; i < 32; ++i)
    result |= (a >> i & 1) << (31 - i);
  return result;
}

static double add(double a, double b, double) { return a + b; }
static double sub(double a, double b, double) { return a - b; }
static double mul(double a, double b, double) { return a * b; }
static double max(double a, double b, double) {
  return b != b || a > b ? a : b;
}
static double min(double a, double b, double) {
  return b != b || a < b ? a : b;
}
static double fused(double a, double b, double c) { return a * b + c; }

/// An operation on pairs of f16, each rounded once.
template <double (*function)(double, double, double)>
static U32 halves(U32 a, U32 b, U32 c) {
  U32 low = toF16(function(fromF16(U16(a)), fromF16(U16(b)), fromF16(U16(c))));
  return low | U32(toF16(function(fromF16(a >> 16), fromF16(b >> 16),
                                  fromF16(c >> 16))))
                   << 16;
}

/// An operation on pairs of bf16, in f32 and rounded.
template <double (*function)(double, double, double)>
static U32 brains(U32 a, U32 b, U32 c) {
  auto one = [](U32 a, U32 b, U32 c) {
    return U32(toBF16(
        float(function(fromBF16(U16(a)), fromBF16(U16(b)), fromBF16(U16(c))))));
  };
  return one(a, b, c) | one(a >> 16, b >> 16, c >> 16) << 16;
}

template <bool isSigned> static U32 bitField(U32 a, U32 start, U32 length) {
  start &= 255, length &= 255;
  U64 value = U64(a) >> (start < 63 ? start : 63);
  length = length < 32 ? length : 32;
  value &= (U64(1) << length) - 1;
  if (isSigned && length && value >> (length - 1) & 1)
    value |= ~((U64(1) << length) - 1);
  return U32(value);
}

#define DEFINE1(NAME, D, A, VALUE)                                             \
  static inline D lane_##NAME(A a) { return VALUE; }
#define DEFINE2(NAME, D, A, VALUE)                                             \
  static inline D lane_##NAME(A a, A b) { return VALUE; }
#define DEFINES(NAME, A, VALUE)                                                \
  static inline A lane_##NAME(A a, U32 b) { return VALUE; }
#define DEFINE3(NAME, D, A, C, VALUE)                                          \
  static inline D lane_##NAME(A a, A b, C c) { return VALUE; }
UNARY(DEFINE1)
BINARY(DEFINE2)
SHIFTS(DEFINES)
TERNARY(DEFINE3)

//===----------------------------------------------------------------------===//
// Operations that are not of this form
//===----------------------------------------------------------------------===//

/// A quotient, or the remainder where `j` says so.
template <typename T> static Status divide(Warp &w, const Instruction &x) {
  const T *a = w.slot<T>(x.a), *b = w.slot<T>(x.b);
  T values[lanes];
  for (int l = 0; l < lanes; ++l) {
    if (!(w.active >> l & 1))
      continue;
    if (!b[l])
      return w.fail(x.line, "division by zero");
    // The least value over -1 overflows.
    T quotient = b[l] == T(-1) && T(-1) < 0 ? T(0 - U64(a[l])) : T(a[l] / b[l]);
    values[l] = x.j ? T(a[l] - U64(quotient) * b[l]) : quotient;
  }
  w.set(x.d, values);
  return Status::Running;
}

/// The field of `j` bits from bit `i` on.
static Status fieldOf64(Warp &w, const Instruction &x) {
  const U64 *a = w.slot<U64>(x.a);
  U64 values[lanes], mask = x.j < 64 ? (U64(1) << x.j) - 1 : ~U64(0);
  for (int l = 0; l < lanes; ++l)
    values[l] = a[l] >> x.i & mask;
  w.set(x.d, values);
  return Status::Running;
}

static Status permuteBytes(Warp &w, const Instruction &x) {
  const U32 *a = w.slot<U32>(x.a), *b = w.slot<U32>(x.b), *c = w.slot<U32>(x.c);
  U32 values[lanes];
  for (int l = 0; l < lanes; ++l) {
    U64 words = U64(b[l]) << 32 | a[l];
    values[l] = 0;
    for (int i = 0; i < 4; ++i) {
      U32 select = c[l] >> 4 * i & 15;
      if (select & 8 && w.active >> l & 1)
        return w.fail(x.line, "no emulation of prmt that replicates signs");
      values[l] |= U32(words >> (select & 7) * 8 & 255) << 8 * i;
    }
  }
  w.set(x.d, values);
  return Status::Running;
}

template <typename T> static Status select(Warp &w, const Instruction &x) {
  const T *a = w.slot<T>(x.a), *b = w.slot<T>(x.b);
  Mask which = w.predicate(x.c);
  T values[lanes];
  for (int l = 0; l < lanes; ++l)
    values[l] = which >> l & 1 ? a[l] : b[l];
  w.set(x.d, values);
  return Status::Running;
}

/// Comparisons by the number in `i`; ptxemu/lower.py has the same order.
template <typename T> static Mask compare(int32_t how, const T *a, const T *b) {
  Mask mask = 0;
  switch (how) {
#define COMPARISON(NUMBER, VALUE)                                              \
  case NUMBER:                                                                 \
    for (int l = 0; l < lanes; ++l)                                            \
      mask |= Mask(VALUE) << l;                                                \
    break;
    COMPARISON(0, a[l] == b[l])
    COMPARISON(1, a[l] < b[l] || a[l] > b[l])
    COMPARISON(2, a[l] < b[l])
    COMPARISON(3, a[l] <= b[l])
    COMPARISON(4, a[l] > b[l])
    COMPARISON(5, a[l] >= b[l])
    COMPARISON(6, a[l] != a[l] || b[l] != b[l])
#undef COMPARISON
  }
  return mask;
}

/// Compares by `i`; 8 in `j` negates that. The predicate `c` joins by the low
/// bits of `j` (0 none, 1 and, 2 or, 3 xor), negated by 4 in it.
template <typename T>
static Status setPredicate(Warp &w, const Instruction &x) {
  Mask mask = compare(x.i, w.slot<T>(x.a), w.slot<T>(x.b));
  mask = x.j & 8 ? ~mask : mask;
  if (x.j & 3) {
    Mask third = x.j & 4 ? ~w.predicate(x.c) : w.predicate(x.c);
    mask = (x.j & 3) == 1   ? mask & third
           : (x.j & 3) == 2 ? mask | third
                            : mask ^ third;
  }
  w.setPredicate(x.d, mask);
  return Status::Running;
}

#define PREDICATE(NAME, VALUE)                                                 \
  static Status NAME(Warp &w, const Instruction &x) {                          \
    Mask a = w.predicate(x.a), b = w.predicate(x.b);                           \
    (void)b;                                                                   \
    w.setPredicate(x.d, VALUE);                                                \
    return Status::Running;                                                    \
  }
PREDICATE(movPredicate, a)
PREDICATE(notPredicate, ~a)
PREDICATE(andPredicate, a &b)
PREDICATE(orPredicate, a | b)
PREDICATE(xorPredicate, a ^ b)

void gdn::emulator::addArithmetic(Operations &all) {
#define ADD1(NAME, D, A, VALUE) {#NAME, unary<D, A, lane_##NAME>},
#define ADD2(NAME, D, A, VALUE) {#NAME, binary<D, A, A, lane_##NAME>},
#define ADDS(NAME, A, VALUE) {#NAME, binary<A, A, U32, lane_##NAME>},
#define ADD3(NAME, D, A, C, VALUE) {#NAME, ternary<D, A, C, lane_##NAME>},
  const Operation table[] = {UNARY(ADD1) BINARY(ADD2) SHIFTS(ADDS)
                                 TERNARY(ADD3){"div_u16", divide<U16>},
                             {"div_s16", divide<S16>},
                             {"div_u32", divide<U32>},
                             {"div_s32", divide<S32>},
                             {"div_u64", divide<U64>},
                             {"div_s64", divide<S64>},
                             {"bfe_u64", fieldOf64},
                             {"prmt_32", permuteBytes},
                             {"selp_16", select<U16>},
                             {"selp_32", select<U32>},
                             {"selp_64", select<U64>},
                             {"setp_f32", setPredicate<float>},
                             {"setp_f64", setPredicate<double>},
                             {"setp_u16", setPredicate<U16>},
                             {"setp_s16", setPredicate<S16>},
                             {"setp_u32", setPredicate<U32>},
                             {"setp_s32", setPredicate<S32>},
                             {"setp_u64", setPredicate<U64>},
                             {"setp_s64", setPredicate<S64>},
                             {"mov_1", movPredicate},
                             {"not_1", notPredicate},
                             {"and_1", andPredicate},
                             {"or_1", orPredicate},
                             {"xor_1", xorPredicate}};
  all.insert(all.end(), std::begin(table), std::end(table));
}
