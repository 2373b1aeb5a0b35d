//===- Engine.h - Runs the warps of emulated kernels ------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of the emulator (docs/Contributing.md, "Run a kernel without a GPU")
// that takes its time: the arithmetic of a warp's 32 lanes, memory with its
// checks, and tensor cores. ptxemu/lower.py writes a kernel as a list of
// `Instruction`s; ptxemu/engine.py calls the functions at the end of this file.
// What is rare (barriers, copies, the order of warps) is in Python, and
// works on the same arrays.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TEST_INTEGRATION_EMULATOR_ENGINE_ENGINE_H
#define GDN_TEST_INTEGRATION_EMULATOR_ENGINE_ENGINE_H

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace gdn::emulator {

constexpr int lanes = 32;
/// A bit for each lane.
using Mask = uint32_t;
constexpr Mask allLanes = ~Mask(0);
/// Bytes of a slot of registers: 32 lanes of 32 bits. A register of 64 bits has
/// two slots; one of 16 bits the first half of a slot; a predicate is a mask at
/// the start of one.
constexpr int slotBytes = 4 * lanes;

/// What `run` returns.
enum class Status : int32_t {
  Running,
  /// Python executes the instruction at `at`, then calls `run` again.
  Effect,
  Ended,
  /// Another warp may go on now.
  Preempted,
  /// `failure` says why.
  Failed
};

struct Instruction {
  /// The number of an operation (gdnEmulatorOperation).
  int32_t operation;
  /// The line of the PTX.
  int32_t line;
  /// Slots of the result and the operands, or what the operation says.
  int32_t d, a, b, c;
  /// Numbers that the operation knows.
  int32_t i, j;
};

/// A block of instructions; the number of blocks stands for the kernel's end.
struct Block {
  int32_t begin, end, line;
  /// The block that its branch goes to; -1 ends lanes, -2 is no branch.
  int32_t target;
  /// The predicate of the branch (-1 for none), whether its negation counts,
  /// and the block where lanes that part meet again.
  int32_t guard, negated, meet;
  /// Whether its first instruction wants all lanes.
  int32_t whole;
};
constexpr int endsLanes = -1, noBranch = -2;

struct Global {
  uint64_t base;
  uint8_t *bytes;
  uint64_t size;
  /// 1 where an array is.
  uint8_t *allocated;
};

/// States of a byte of shared memory.
enum : uint8_t { Unwritten = 0, Written = 1, Arriving = 2, Barrier = 4 };
constexpr uint32_t wordWritten = 0x01010101;

/// A CTA's shared memory; ptxemu/memory.py has the arrays.
struct Shared {
  uint64_t base;
  uint8_t *bytes;
  uint64_t size;
  /// By byte: its state.
  uint8_t *state;
  /// By word: who wrote it last, when, and in which line.
  int32_t *writer, *written, *writtenLine;
  /// By word and thread: when the thread read it last; by word the last line.
  int32_t *read, *readLine;
  /// By word: reads of copies and products in flight; the warp (from 1 on)
  /// whose ordinary store the asynchronous proxy does not see yet; warps (a bit
  /// each) whose ordinary loads a copy into the word may overtake.
  int32_t *reading, *unfenced;
  uint64_t *loaded;
  /// By page of 64 words: whether `unfenced` or `loaded` may have any.
  uint8_t *dirty;
  /// Threads of a clock, and the warps of a CTA.
  int32_t threads, warps;

  uint32_t stateOf(uint64_t word) const {
    uint32_t value;
    memcpy(&value, state + 4 * word, sizeof(value));
    return value;
  }
  void setState(uint64_t word, uint32_t value) {
    memcpy(state + 4 * word, &value, sizeof(value));
  }
};
constexpr int pageWords = 64;

/// Where the elements of a product's operand lie: halves by row and then k, and
/// the words that these are in; the first and the last byte.
struct Places {
  std::vector<int32_t> halves, words;
  int64_t first = 0, last = 0;
};

struct Program {
  std::vector<Instruction> code;
  std::vector<Block> blocks;
  /// Lists of slots and registers that instructions name by their start.
  std::vector<int32_t> lists;
  std::map<std::vector<int64_t>, Places> places;
};

/// A wgmma of one warp: 16 of the 64 rows.
struct Product {
  int32_t line;
  /// The list of accumulators, and how many there are.
  int32_t accumulators, count;
  bool half, negate, scale, done;
  /// A in shared memory, or nullptr, with the list of registers of A and what
  /// they held.
  const Places *a, *b;
  int32_t registersOfA;
  uint32_t wordsOfA[4][lanes];
};

/// What a flagged register (one that a wgmma may write) holds.
enum : uint8_t { NoValue = 0, Value = 1, InFlight = 2 };

/// A branch at which lanes parted: where they meet, and where lanes are.
struct Path {
  int32_t meet;
  std::vector<std::pair<int32_t, Mask>> groups;
};

struct Warp {
  Program *program;
  Global *global;
  Shared *shared;
  /// What the warpgroup's warps executed in common, by line.
  std::vector<int32_t> *log;
  uint8_t *frame;
  /// By thread: up to where this warp has seen its work.
  int32_t *clock;
  const uint8_t *params;
  int32_t thread, index;
  /// Whether it may be interrupted, and products end early: 0 eager, 1 lazy, 2
  /// random.
  int32_t mode;
  uint64_t random;

  /// By the number of a register that some lanes may not have written: those
  /// that have.
  std::vector<Mask> wrote;
  /// By the number of a flagged register.
  std::vector<uint8_t> flags;
  std::vector<Path> paths;
  int32_t block = -1, at = 0;
  /// The lanes of the block, and those among them that the guard leaves.
  Mask mask = allLanes, active = allLanes;
  size_t logged = 0;
  bool fenced = false;
  std::vector<Product> open;
  std::vector<std::vector<Product>> groups;
  /// Products in flight by their list of accumulators.
  std::map<int32_t, int> accumulating;
  std::string failure;

  template <typename T> T *slot(int32_t number) {
    return reinterpret_cast<T *>(frame + int64_t(number) * slotBytes);
  }
  Mask &predicate(int32_t number) { return *slot<Mask>(number); }
  /// Writes the active lanes of a register.
  template <typename T> void set(int32_t number, const T *values) {
    T *to = slot<T>(number);
    if (active == allLanes) {
      memcpy(to, values, sizeof(T) * lanes);
      return;
    }
    for (int l = 0; l < lanes; ++l)
      if (active >> l & 1)
        to[l] = values[l];
  }
  void setPredicate(int32_t number, Mask value) {
    Mask &to = predicate(number);
    to = (to & ~active) | (value & active);
  }
  uint64_t draw() {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return random;
  }
  /// Ends the run with a message. `%r` and a number of a slot in brackets stand
  /// for the register's name.
  Status fail(int line, const char *format, ...)
      __attribute__((format(printf, 3, 4)));
};

using Handler = Status (*)(Warp &, const Instruction &);
struct Operation {
  const char *name;
  Handler run;
};
using Operations = std::vector<Operation>;

void addArithmetic(Operations &);
void addConversions(Operations &);
void addMemory(Operations &);
void addWarpWide(Operations &);
void addTensorCores(Operations &);
void addControl(Operations &);
/// All operations, in the order of their numbers.
const Operations &operations();

//===----------------------------------------------------------------------===//
// Checks.cpp
//===----------------------------------------------------------------------===//

/// Who a thread of the clocks is, as text.
std::string nameOf(const Shared &, int thread);
/// An ordinary read or write of `bytes` at a byte: whether it may be, and marks
/// it. False with a failure of the warp.
bool readShared(Warp &, int64_t at, int bytes, int line);
bool writeShared(Warp &, int64_t at, int bytes, int line);
/// What a product or copy reads, from its issue on, and up to its end.
bool beginAsyncRead(Warp &, const int32_t *words, size_t count, int line,
                    bool unwritten);
void endAsyncRead(Warp &, const int32_t *words, size_t count);
/// A copy into words begins: whether it may be, and marks them as arriving.
/// `clock` and `thread` are those of the copy.
bool beginCopy(Warp &, Shared &into, const int32_t *words, size_t count,
               int line, const int32_t *clock, int thread, bool ordinary);
/// Shows the asynchronous proxy the stores that the warp has seen.
void fence(Warp &);
/// A product that took registers has waited for the loads that made them.
void productsTook(Warp &);

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

template <typename To, typename From> inline To bits(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &value, sizeof(to));
  return to;
}
inline float fromBF16(uint16_t x) { return bits<float>(uint32_t(x) << 16); }
/// To nearest even.
inline uint16_t toBF16(float x) {
  uint32_t b = bits<uint32_t>(x);
  return x != x ? 0x7FFF : uint16_t((b + 0x7FFF + (b >> 16 & 1)) >> 16);
}
float fromF16(uint16_t);
uint16_t toF16(double);

} // namespace gdn::emulator

#endif // GDN_TEST_INTEGRATION_EMULATOR_ENGINE_ENGINE_H
