//===- Memory.cpp - Loads and stores of a warp ----------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Engine.h"

using namespace gdn::emulator;

/// Checks the active lanes' addresses a + i of `bytes` each; gives where these
/// are in a memory.
static bool findPlaces(Warp &w, const Instruction &x, int bytes, uint64_t base,
                       uint64_t size, const char *name, int64_t *places) {
  const uint64_t *address = w.slot<uint64_t>(x.a);
  for (int l = 0; l < lanes; ++l) {
    uint64_t at = address[l] + uint64_t(int64_t(x.i));
    int64_t place = int64_t(at - base);
    places[l] = place;
    if (!(w.active >> l & 1))
      continue;
    if (at & uint64_t(bytes - 1)) {
      w.fail(x.line,
             "expected an address in multiples of %d bytes, got %#llx in %s",
             bytes, static_cast<unsigned long long>(at), name);
      return false;
    }
    if (place < 0 || place + bytes > int64_t(size)) {
      w.fail(x.line,
             "expected an address in %s of %llu bytes, got %d bytes at %+lld",
             name, static_cast<unsigned long long>(size), bytes,
             static_cast<long long>(place));
      return false;
    }
  }
  return true;
}

/// Where the nearest array is, for a message.
static std::string describe(const Global &g, int64_t at) {
  int64_t best = -1, number = -1;
  std::string text = "no array";
  for (int64_t i = 0; i <= int64_t(g.size); ++i) {
    bool before = i && g.allocated[i - 1],
         here = i < int64_t(g.size) && g.allocated[i];
    if (before == here)
      continue;
    number += here;
    int64_t distance = at < i ? i - at : at - i;
    if (best >= 0 && distance >= best)
      continue;
    best = distance;
    text = std::to_string(distance) +
           (here ? " bytes before the start" : " bytes behind the end") +
           " of array " + std::to_string(number);
  }
  return text;
}

static bool checkGlobal(Warp &w, int64_t at, int bytes, int line) {
  const Global &g = *w.global;
  if (g.allocated[at] && g.allocated[at + bytes - 1])
    return true;
  w.fail(line, "expected an address in an array, got %d bytes at %#llx, %s",
         bytes, static_cast<unsigned long long>(g.base + uint64_t(at)),
         describe(g, at).c_str());
  return false;
}

/// Checks all active lanes' accesses.
template <bool shared, bool write>
static bool check(Warp &w, const Instruction &x, int bytes, int64_t *places) {
  if (shared ? !findPlaces(w, x, bytes, w.shared->base, w.shared->size,
                           "shared memory", places)
             : !findPlaces(w, x, bytes, w.global->base, w.global->size,
                           "global memory", places))
    return false;
  for (int l = 0; l < lanes; ++l) {
    if (!(w.active >> l & 1))
      continue;
    if (!shared ? !checkGlobal(w, places[l], bytes, x.line)
        : write ? !writeShared(w, places[l], bytes, x.line)
                : !readShared(w, places[l], bytes, x.line))
      return false;
  }
  return true;
}

// The list `b` has `j` registers; values are of type From in memory and of type
// To in registers.
template <bool shared, typename From, typename To>
static Status load(Warp &w, const Instruction &x) {
  int64_t places[lanes];
  if (!check<shared, false>(w, x, int(sizeof(From)) * x.j, places))
    return Status::Failed;
  const uint8_t *bytes = shared ? w.shared->bytes : w.global->bytes;
  const int32_t *list = w.program->lists.data() + x.b;
  for (int i = 0; i < x.j; ++i) {
    if (list[i] < 0)
      continue;
    To values[lanes];
    for (int l = 0; l < lanes; ++l) {
      From value = 0;
      if (w.active >> l & 1)
        memcpy(&value, bytes + places[l] + i * sizeof(From), sizeof(From));
      values[l] = To(value);
    }
    w.set(list[i], values);
  }
  return Status::Running;
}

template <bool shared, typename In, typename Register>
static Status store(Warp &w, const Instruction &x) {
  int64_t places[lanes];
  if (!check<shared, true>(w, x, int(sizeof(In)) * x.j, places))
    return Status::Failed;
  uint8_t *bytes = shared ? w.shared->bytes : w.global->bytes;
  const int32_t *list = w.program->lists.data() + x.b;
  for (int i = 0; i < x.j; ++i) {
    const Register *values = w.slot<Register>(list[i]);
    for (int l = 0; l < lanes; ++l) {
      if (!(w.active >> l & 1))
        continue;
      In value = In(values[l]);
      memcpy(bytes + places[l] + i * sizeof(In), &value, sizeof(In));
    }
  }
  return Status::Running;
}

/// Atomic operations by number; ptxemu/effects.py has the same order.
enum : int32_t { Add, Max, Min, Exchange, Or, And, CompareAndSwap, Decrement };

template <typename T>
static T combine(int32_t operation, T was, T value, T other) {
  switch (operation) {
  case Add:
    return was + value;
  case Max:
    return value > was ? value : was;
  case Min:
    return value < was ? value : was;
  case Exchange:
    return value;
  case CompareAndSwap:
    return was == value ? other : was;
  case Decrement:
    return was == 0 || was > value ? value : was - 1;
  default:
    break;
  }
  if constexpr (T(1) / 2 == 0)
    return operation == Or ? was | value : was & value;
  return was;
}

/// The operation `j` on memory at `a`, of `b` and `c`, by the lanes in order;
/// the slot `d`, if it is not -1, gets what was there.
template <bool shared, typename T>
static Status atomic(Warp &w, const Instruction &x) {
  int64_t places[lanes];
  if (!check<shared, false>(w, x, sizeof(T), places))
    return Status::Failed;
  uint8_t *bytes = shared ? w.shared->bytes : w.global->bytes;
  const T *b = w.slot<T>(x.b), *c = w.slot<T>(x.c);
  T values[lanes];
  for (int l = 0; l < lanes; ++l) {
    if (!(w.active >> l & 1))
      continue;
    memcpy(&values[l], bytes + places[l], sizeof(T));
    const T now = combine(x.j, values[l], b[l], c[l]);
    memcpy(bytes + places[l], &now, sizeof(T));
  }
  if (x.d >= 0)
    w.set(x.d, values);
  return Status::Running;
}

/// A value of `j` bytes at byte `i` of the parameters.
static Status loadParameter(Warp &w, const Instruction &x) {
  auto spread = [&](auto value) {
    memcpy(&value, w.params + x.i, size_t(x.j));
    decltype(value) values[lanes];
    for (auto &v : values)
      v = value;
    w.set(x.d, values);
  };
  if (x.j == 8)
    spread(uint64_t(0));
  else if (x.j == 4)
    spread(uint32_t(0));
  else
    spread(uint16_t(0));
  return Status::Running;
}

/// The address `a` as another CTA of the cluster, of rank `b`, sees it; the
/// cluster has `gdnEmulatorWarp`'s warps.
static Status mapAddress(Warp &w, const Instruction &x) {
  const uint64_t *a = w.slot<uint64_t>(x.a);
  const uint32_t *b = w.slot<uint32_t>(x.b);
  uint32_t ranks = uint32_t((w.shared->threads - 1) / w.shared->warps);
  uint64_t values[lanes];
  for (int l = 0; l < lanes; ++l) {
    if (b[l] >= ranks && w.active >> l & 1)
      return w.fail(x.line, "expected a rank below %u, got %u", ranks, b[l]);
    values[l] = (a[l] & 0xFFFFFF) | (uint64_t(b[l]) + 1) << 24;
  }
  w.set(x.d, values);
  return Status::Running;
}

//===----------------------------------------------------------------------===//
// Matrices of 8 x 8 halves
//===----------------------------------------------------------------------===//

/// Where the rows of `count` matrices begin: lane 8 m + r has row r of matrix
/// m.
static bool findRows(Warp &w, const Instruction &x, int count,
                     int64_t *places) {
  const uint64_t *address = w.slot<uint64_t>(x.a);
  for (int l = 0; l < 8 * count; ++l) {
    uint64_t at = address[l] + uint64_t(int64_t(x.i));
    places[l] = int64_t(at - w.shared->base);
    if (places[l] % 16) {
      w.fail(x.line, "expected rows at multiples of 16 bytes, got %lld",
             static_cast<long long>(places[l]));
      return false;
    }
    if (places[l] < 0 || places[l] + 16 > int64_t(w.shared->size)) {
      w.fail(x.line,
             "rows of a matrix leave shared memory of %llu bytes: byte %lld",
             static_cast<unsigned long long>(w.shared->size),
             static_cast<long long>(places[l]));
      return false;
    }
  }
  return true;
}

/// A row and a column of a matrix, by the lane and the half of its word.
static void findElement(int lane, int half, bool transposed, int &row,
                        int &column) {
  row = lane / 4, column = lane % 4 * 2 + half;
  if (transposed)
    std::swap(row, column);
}

/// ldmatrix of the registers in the list `b`: low bits of `j` say how many, 8
/// in it that they are transposed.
static Status loadMatrix(Warp &w, const Instruction &x) {
  const int count = x.j & 7;
  int64_t places[lanes];
  if (!findRows(w, x, count, places))
    return Status::Failed;
  for (int l = 0; l < 8 * count; ++l)
    if (!readShared(w, places[l], 16, x.line))
      return Status::Failed;
  for (int m = 0; m < count; ++m) {
    uint16_t values[lanes][2];
    for (int l = 0; l < lanes; ++l)
      for (int half = 0; half < 2; ++half) {
        int row, column;
        findElement(l, half, x.j & 8, row, column);
        memcpy(&values[l][half],
               w.shared->bytes + places[8 * m + row] + 2 * column, 2);
      }
    uint32_t words[lanes];
    memcpy(words, values, sizeof(words));
    w.set(w.program->lists[size_t(x.b + m)], words);
  }
  return Status::Running;
}

/// stmatrix, as ldmatrix.
static Status storeMatrix(Warp &w, const Instruction &x) {
  const int count = x.j & 7;
  int64_t places[lanes];
  if (!findRows(w, x, count, places))
    return Status::Failed;
  for (int l = 0; l < 8 * count; ++l)
    if (!writeShared(w, places[l], 16, x.line))
      return Status::Failed;
  for (int m = 0; m < count; ++m) {
    const uint16_t *values =
        w.slot<uint16_t>(w.program->lists[size_t(x.b + m)]);
    for (int l = 0; l < lanes; ++l)
      for (int half = 0; half < 2; ++half) {
        int row, column;
        findElement(l, half, x.j & 8, row, column);
        memcpy(w.shared->bytes + places[8 * m + row] + 2 * column,
               values + 2 * l + half, 2);
      }
  }
  return Status::Running;
}

/// A matrix in registers, transposed.
static Status moveMatrix(Warp &w, const Instruction &x) {
  const uint16_t *a = w.slot<uint16_t>(x.a);
  uint16_t halves[2 * lanes];
  for (int row = 0; row < 8; ++row)
    for (int column = 0; column < 8; ++column)
      halves[8 * row + column] = a[8 * column + row];
  uint32_t words[lanes];
  memcpy(words, halves, sizeof(words));
  w.set(x.d, words);
  return Status::Running;
}

static Status fenceProxies(Warp &w, const Instruction &) {
  fence(w);
  return Status::Running;
}

void gdn::emulator::addMemory(Operations &all) {
#define ACCESS(NAME, IN, REGISTER, LOADED)                                     \
  {"ld_shared_" NAME, load<true, IN, LOADED>},                                 \
      {"ld_global_" NAME, load<false, IN, LOADED>},                            \
      {"st_shared_" NAME, store<true, IN, REGISTER>},                          \
      {"st_global_" NAME, store<false, IN, REGISTER>},
#define ATOMIC(NAME, T)                                                        \
  {"atom_shared_" NAME, atomic<true, T>},                                      \
      {"atom_global_" NAME, atomic<false, T>},
  const Operation table[] = {
      ATOMIC("u32", uint32_t) ATOMIC("s32", int32_t) ATOMIC("u64", uint64_t)
          ATOMIC("f32", float) ACCESS("u8", uint8_t, uint16_t, uint16_t)
              ACCESS("s8", int8_t, uint16_t, int16_t)
                  ACCESS("u16", uint16_t, uint16_t, uint16_t)
                      ACCESS("u32", uint32_t, uint32_t, uint32_t)
                          ACCESS("u64", uint64_t, uint64_t,
                                 uint64_t){"ld_param", loadParameter},
      {"mapa", mapAddress},
      {"fence", fenceProxies},
      {"ldmatrix", loadMatrix},
      {"stmatrix", storeMatrix},
      {"movmatrix", moveMatrix}};
  all.insert(all.end(), std::begin(table), std::end(table));
}
