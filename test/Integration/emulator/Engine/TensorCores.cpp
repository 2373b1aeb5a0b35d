//===- TensorCores.cpp - Products of matrices -----------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Engine.h"

#include <algorithm>

using namespace gdn::emulator;

/// Values of k of a product, and rows of A of a warp.
constexpr int depth = 16, rowsOfA = 16;

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

namespace {
struct Descriptor {
  int64_t start, leading, stride, base, swizzle;
  explicit Descriptor(uint64_t b)
      : start((b & 0x3FFF) << 4), leading((b >> 16 & 0x3FFF) << 4),
        stride((b >> 32 & 0x3FFF) << 4), base(b >> 49 & 7), swizzle(b >> 62) {}
  /// Bytes of a row of the swizzle's pattern, and the mask of address bits.
  int64_t pitch() const { return 256 >> swizzle; }
  int64_t mask() const { return (16 >> swizzle) - 1; }
};
} // namespace

static std::string violatedRule(const Descriptor &d, uint64_t bits, int rows,
                                bool transposed) {
  const uint64_t one = 1;
  if (bits & (one << 14 | one << 15 | one << 30 | one << 31 |
              uint64_t(7) << 46 | uint64_t(0x3FF) << 52))
    return "zeros in its reserved bits";
  if (!d.swizzle)
    return transposed ? "a swizzle, as its operand lies along M or N" : "";
  const int64_t pitch = d.pitch(), pattern = 8 * pitch,
                block = transposed ? pitch / 2 : 8;
  const std::string multiples =
      " in multiples of " + std::to_string(pattern) + " bytes";
  if ((d.start >> 7 & d.mask()) != d.base)
    return "a start where the swizzle's pattern of " + std::to_string(pattern) +
           " bytes begins, or the base offset";
  if (!transposed && d.start % pitch + 32 > pitch)
    return "16 values of k within a row of " + std::to_string(pitch) + " bytes";
  if ((transposed || rows > 8) && d.stride % pattern)
    return "a stride" + multiples;
  if (transposed && rows > block && d.leading % pattern)
    return "a leading offset" + multiples;
  if (transposed &&
      d.start % pitch + 2 * std::min<int64_t>(rows, block) > pitch)
    return std::to_string(std::min<int64_t>(rows, block)) +
           " values within a row of " + std::to_string(pitch) + " bytes";
  return "";
}

static Places findPlaces(const Descriptor &d, int first, int count,
                         bool transposed, int64_t base) {
  Places places;
  places.first = INT64_MAX;
  for (int row = first; row < first + count; ++row)
    for (int k = 0; k < depth; ++k) {
      int64_t at;
      if (!d.swizzle) {
        at = d.start + row / 8 * d.stride + k / 8 * d.leading + row % 8 * 16 +
             k % 8 * 2;
      } else {
        const int64_t pitch = d.pitch(), block = pitch / 2;
        at = transposed
                 ? d.start + row / block * d.leading + k / 8 * d.stride +
                       k % 8 * pitch + row % block * 2
                 : d.start + row / 8 * d.stride + row % 8 * pitch + k * 2;
        at ^= (at >> 7 & d.mask()) << 4;
      }
      at -= base;
      places.first = std::min(places.first, at);
      places.last = std::max(places.last, at + 2);
      places.halves.push_back(int32_t(at / 2));
      places.words.push_back(int32_t(at / 4));
    }
  std::sort(places.words.begin(), places.words.end());
  places.words.erase(std::unique(places.words.begin(), places.words.end()),
                     places.words.end());
  return places;
}

/// The places of `count` of `rows` rows (of M or N) from `first` on, and the
/// reads of them; nullptr with a failure.
static const Places *readOperand(Warp &w, int slot, int rows, int first,
                                 int count, bool transposed, int line) {
  const uint64_t *values = w.slot<uint64_t>(slot);
  for (int l = 1; l < lanes; ++l)
    if (values[l] != values[0]) {
      w.fail(line, "expected the same descriptor in all lanes");
      return nullptr;
    }
  const Descriptor d(values[0]);
  const std::vector<int64_t> key = {int64_t(values[0]), rows, first, count,
                                    transposed};
  auto found = w.program->places.find(key);
  if (found == w.program->places.end()) {
    std::string rule = violatedRule(d, values[0], rows, transposed);
    if (!rule.empty()) {
      w.fail(line,
             "expected a descriptor with %s, got %#018llx (start %lld, leading "
             "%lld, stride %lld, base %lld, swizzle %lld)",
             rule.c_str(), static_cast<unsigned long long>(values[0]),
             static_cast<long long>(d.start), static_cast<long long>(d.leading),
             static_cast<long long>(d.stride), static_cast<long long>(d.base),
             static_cast<long long>(d.swizzle));
      return nullptr;
    }
    found = w.program->places
                .emplace(key, findPlaces(d, first, count, transposed,
                                         int64_t(w.shared->base)))
                .first;
  }
  const Places &places = found->second;
  if (places.first < 0 || places.last > int64_t(w.shared->size)) {
    w.fail(line, "an operand at byte %lld leaves shared memory of %llu bytes",
           static_cast<long long>(d.start - int64_t(w.shared->base)),
           static_cast<unsigned long long>(w.shared->size));
    return nullptr;
  }
  if (!beginAsyncRead(w, places.words.data(), places.words.size(), line, false))
    return nullptr;
  return &places;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static float toFloat(uint16_t x, bool half) {
  return half ? fromF16(x) : fromBF16(x);
}

/// Eight columns of x = a b by rows, in the order of k; b has `pitch` columns.
/// A product has one rounding with its sum: those of 16 bits are exact.
template <int count>
static void multiply(const float (*a)[depth], const float *b, int pitch,
                     float (*x)[8]) {
  for (int row = 0; row < rowsOfA; ++row) {
    float sum[8] = {};
    for (int k = 0; k < count; ++k)
      for (int c = 0; c < 8; ++c)
        sum[c] += a[row][k] * b[k * pitch + c];
    memcpy(x[row], sum, sizeof(sum));
  }
}

/// Where an element of eight columns of a result is in four registers: the
/// register and the lane.
static int registerOf(int row, int column) { return row / 8 * 2 + column % 2; }
static int laneOf(int row, int column) { return row % 8 * 4 + column / 2; }

static void runProduct(Warp &w, Product &p) {
  p.done = true;
  const auto half = [&](int32_t place) {
    uint16_t value;
    memcpy(&value, w.shared->bytes + 2 * int64_t(place), sizeof(value));
    return toFloat(value, p.half);
  };
  float a[rowsOfA][depth], x[rowsOfA][8];
  std::vector<float> b(size_t(depth) * p.count * 2);
  const int columns = p.count * 2;
  for (int n = 0; n < columns; ++n)
    for (int k = 0; k < depth; ++k)
      b[k * columns + n] = half(p.b->halves[n * depth + k]);
  for (int row = 0; row < rowsOfA; ++row)
    for (int k = 0; k < depth; ++k) {
      if (p.a) {
        a[row][k] = half(p.a->halves[row * depth + k]);
        continue;
      }
      // Registers of A: by half of k and of rows.
      uint32_t word = p.wordsOfA[k / 8 * 2 + row / 8][laneOf(row, k % 8)];
      a[row][k] = toFloat(uint16_t(k % 2 ? word >> 16 : word), p.half);
    }
  const int32_t *registers = w.program->lists.data() + p.accumulators;
  for (int n = 0; n < columns; n += 8) {
    multiply<depth>(a, b.data() + n, columns, x);
    float *to[4];
    for (int i = 0; i < 4; ++i)
      to[i] = w.slot<float>(registers[n / 2 + i]);
    for (int row = 0; row < rowsOfA; ++row)
      for (int c = 0; c < 8; ++c) {
        float &sum = to[registerOf(row, c)][laneOf(row, c)];
        const float value = p.negate ? -x[row][c] : x[row][c];
        sum = p.scale ? sum + value : value;
      }
  }
}

/// Computes all products that have not been: they run in order.
static void runProducts(Warp &w) {
  for (auto &group : w.groups)
    for (Product &p : group)
      if (!p.done)
        runProduct(w, p);
  for (Product &p : w.open)
    if (!p.done)
      runProduct(w, p);
}

/// All warps of a warpgroup execute the same instructions of this kind in the
/// same order.
static Status collective(Warp &w, int line) {
  std::vector<int32_t> &log = *w.log;
  if (w.logged == log.size())
    log.push_back(line);
  else if (log[w.logged] != line)
    return w.fail(line,
                  "warp %d executes this where another warp of its warpgroup "
                  "executes line %d",
                  w.index, log[w.logged]);
  ++w.logged;
  return Status::Running;
}

static Status collectiveOf(Warp &w, const Instruction &x) {
  return collective(w, x.line);
}

static Status wgmmaFence(Warp &w, const Instruction &x) {
  w.fenced = true;
  return collective(w, x.line);
}

/// Bits of `j` of a wgmma.
enum : int32_t {
  InRegisters = 1,
  TransposedA = 2,
  TransposedB = 4,
  Negated = 8,
  IsHalf = 16
};

/// The list `d` has the `i` / 2 accumulators and their flags, the list `a` the
/// registers of A and their flags; or the slots `a` and `b` have descriptors.
/// The predicate `c` says whether the accumulators are added to.
static Status wgmma(Warp &w, const Instruction &x) {
  if (collective(w, x.line) == Status::Failed)
    return Status::Failed;
  if (!w.fenced)
    return w.fail(x.line, "expected wgmma.fence in front of the first wgmma");
  w.open.emplace_back();
  Product &p = w.open.back();
  p.line = x.line, p.accumulators = x.d, p.count = x.i / 2, p.done = false;
  p.half = x.j & IsHalf, p.negate = x.j & Negated;
  p.a = nullptr, p.registersOfA = -1;
  if (x.j & InRegisters) {
    p.registersOfA = x.a;
    for (int i = 0; i < 4; ++i)
      memcpy(p.wordsOfA[i], w.slot<uint32_t>(w.program->lists[size_t(x.a + i)]),
             slotBytes);
  } else if (!(p.a = readOperand(w, x.a, 64, rowsOfA * (w.index % 4), rowsOfA,
                                 x.j & TransposedA, x.line))) {
    return Status::Failed;
  }
  p.b = readOperand(w, x.b, x.i, 0, x.i, x.j & TransposedB, x.line);
  if (!p.b)
    return Status::Failed;
  const Mask scale = w.predicate(x.c);
  if (scale && scale != allLanes)
    return w.fail(x.line, "expected the same scale-d in all lanes");
  p.scale = scale != 0;
  const int32_t *flags = w.program->lists.data() + x.d + p.count;
  int &uses = w.accumulating[x.d];
  if (!uses)
    for (int i = 0; i < p.count; ++i) {
      uint8_t &flag = w.flags[size_t(flags[i])];
      if (flag == InFlight)
        return w.fail(x.line,
                      "some accumulators belong to another wgmma in flight");
      if (p.scale && flag == NoValue)
        return w.fail(x.line,
                      "expected accumulators with values, got registers "
                      "that were never written");
      flag = InFlight;
    }
  ++uses;
  if (w.mode == 0 || (w.mode == 2 && w.draw() % 2))
    runProducts(w);
  return Status::Running;
}

static Status wgmmaCommit(Warp &w, const Instruction &x) {
  w.groups.push_back(std::move(w.open));
  w.open.clear();
  return collective(w, x.line);
}

/// Whether a register of A holds other words now than at the issue.
static bool overwrittenA(Warp &w, const Product &p) {
  const int32_t *list = w.program->lists.data() + p.registersOfA;
  for (int i = 0; i < 4; ++i)
    if ((list[4 + i] >= 0 && w.flags[size_t(list[4 + i])] != Value) ||
        memcmp(w.slot<uint32_t>(list[i]), p.wordsOfA[i], slotBytes))
      return true;
  return false;
}

/// Waits until at most `i` groups are in flight.
static Status wgmmaWait(Warp &w, const Instruction &x) {
  if (collective(w, x.line) == Status::Failed)
    return Status::Failed;
  while (w.groups.size() > size_t(x.i)) {
    std::vector<Product> group = std::move(w.groups.front());
    w.groups.erase(w.groups.begin());
    for (const Product &p : group)
      if (p.registersOfA >= 0) {
        productsTook(w);
        break;
      }
    for (Product &p : group) {
      if (!p.done)
        runProduct(w, p);
      for (const Places *places : {p.a, p.b})
        if (places)
          endAsyncRead(w, places->words.data(), places->words.size());
      if (p.registersOfA >= 0 && overwrittenA(w, p))
        return w.fail(x.line,
                      "a register of A of the wgmma of line %d was written "
                      "before this wait",
                      p.line);
      auto use = w.accumulating.find(p.accumulators);
      if (--use->second)
        continue;
      w.accumulating.erase(use);
      const int32_t *list = w.program->lists.data() + p.accumulators;
      for (int i = 0; i < p.count; ++i) {
        uint8_t &flag = w.flags[size_t(list[p.count + i])];
        if (flag != InFlight)
          return w.fail(x.line,
                        "accumulator %%r[%d] of the wgmma of line %d was "
                        "written before this wait",
                        list[i], p.line);
        flag = Value;
      }
    }
  }
  return Status::Running;
}

//===----------------------------------------------------------------------===//
// mma.sync
//===----------------------------------------------------------------------===//

/// mma.sync.m16n8k<j>: lists of A `a`, B `b`, C `c` and the result `d`; the
/// kind `i` is 0 bf16, 1 f16, 2 tf32.
static Status mma(Warp &w, const Instruction &x) {
  const int32_t *lists = w.program->lists.data();
  const auto word = [&](int list, int number, int lane) {
    return w.slot<uint32_t>(lists[list + number])[lane];
  };
  float sums[4][lanes];
  for (int row = 0; row < rowsOfA; ++row)
    for (int c = 0; c < 8; ++c) {
      float sum = 0;
      for (int k = 0; k < x.j; ++k) {
        float a, b;
        if (x.i == 2) {
          a = bits<float>(word(x.a, k / 4 * 2 + row / 8, row % 8 * 4 + k % 4));
          b = bits<float>(word(x.b, k / 4, c * 4 + k % 4));
        } else {
          const uint32_t wordA =
              word(x.a, k / 8 * 2 + row / 8, laneOf(row, k % 8));
          const uint32_t wordB = word(x.b, k / 8, c * 4 + k % 8 / 2);
          a = toFloat(uint16_t(k % 2 ? wordA >> 16 : wordA), x.i == 1);
          b = toFloat(uint16_t(k % 2 ? wordB >> 16 : wordB), x.i == 1);
        }
        sum = float(double(a) * b + sum);
      }
      const int number = registerOf(row, c), lane = laneOf(row, c);
      sums[number][lane] = bits<float>(word(x.c, number, lane)) + sum;
    }
  for (int i = 0; i < 4; ++i)
    w.set(lists[x.d + i], sums[i]);
  return Status::Running;
}

void gdn::emulator::addTensorCores(Operations &all) {
  const Operation table[] = {{"collective", collectiveOf},
                             {"wgmma_fence", wgmmaFence},
                             {"wgmma", wgmma},
                             {"wgmma_commit", wgmmaCommit},
                             {"wgmma_wait", wgmmaWait},
                             {"mma", mma}};
  all.insert(all.end(), std::begin(table), std::end(table));
}
