//===- KnownCalls.h - Calls like earlier ones -------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels and functions are called again and again with arrays of the same
// types, extents and strides. All but addresses and scalars follows from these
// and, in a function, from its integers: that the arguments are right, sizes,
// grids, the parameters of each launch. So a few calls are kept, and one that
// agrees with one of them compares, writes addresses and scalars, and launches.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_RUNTIME_KNOWNCALLS_H
#define GDN_LIB_RUNTIME_KNOWNCALLS_H

#include "Parameters.h"

#include <atomic>

namespace gdn::runtime {

/// A kernel that a call launches.
struct CallLaunch {
  GdnKernel *kernel;
  /// Where a function's call has the kernel's arguments from; null where they
  /// are the call's own.
  const GdnOperand *operands;
  const GdnViewDesc *views;
};

/// Where an argument of a kernel comes from.
struct ValueOrigin {
  static constexpr int32_t workspace = -1, size = -2;

  /// An argument of the call, `workspace`, or `size`: a scalar that follows
  /// from the key.
  int32_t arg;
  /// Bytes from there.
  uint64_t offset;
};

/// A launch of a known call.
struct KnownLaunch {
  /// What a function asks for; a call of a kernel brings its grid.
  uint32_t blocks;
  Parameters parameters;
};

/// A place in the parameters whose value each call brings.
struct KnownValue {
  enum class Kind { Address, TensorMap, Scalar32, Scalar64 };

  Kind kind;
  ValueOrigin origin;
  /// The address that is there.
  uintptr_t address;
  unsigned char *place;
};

/// What is known of a call. The thread that holds it has it to itself.
struct KnownCall {
  std::atomic_flag isHeld;
  /// A sum over the first array, so that most other calls need no hold to see
  /// that they differ.
  std::atomic<uint64_t> hint;
  /// Whether there is such a call.
  bool isKnown;
  /// Whether arrays that are aligned as kernels ask have views that are. What a
  /// call like this one is compared by says so of the arrays alone.
  bool mayMove;
  uint64_t workspaceBytes;
  /// Whether arrays are there and have strides, extents and strides; integers
  /// that a function's sizes may be made of.
  int64_t *key;
  bool *hasElements;
  KnownLaunch *launches;
  KnownValue *values;
  int numValues;

  /// Takes note of a launch whose parameters have been written. `origins` is
  /// null where the arguments are the call's own.
  void addLaunch(int index, const GdnKernel &kernel, const GdnArg *args,
                 const ValueOrigin *origins);
  /// Writes what differs in a call that fits. False if the driver would not
  /// move a tensor map: nothing is known then any more.
  bool rewrite(const Driver &driver, const GdnArg *args, void *workspace);
};

/// The last few calls of a kernel or a function. Their memory is allocated with
/// it, as much as the description says.
class KnownCalls {
public:
  /// Calls of a kernel or a function with such arguments; null without memory.
  static KnownCalls *create(const GdnArgDesc *args, int32_t numArgs,
                            const CallLaunch *launches, int numLaunches,
                            bool isOfFunction);
  static void destroy(KnownCalls *calls);

private:
  friend class HeldCall;
  static constexpr unsigned size = 4;

  KnownCalls() = default;
  /// Whether calls are alike only with the same value of scalar `arg`.
  bool isKey(int32_t arg) const;
  bool fits(const KnownCall &call, const GdnArg *given, int32_t numGiven) const;
  void noteKey(KnownCall &call, const GdnArg *given) const;

  const GdnArgDesc *args;
  int32_t numArgs;
  bool isOfFunction;
  /// What must be 0 in the address of each array that has elements.
  uint64_t addressMasks[maxArgs];
  std::atomic<unsigned> oldest;
  KnownCall list[size];
};

/// A thread's hold on a known call. No thread waits for another one: what is
/// held is passed over.
class HeldCall {
public:
  HeldCall() = default;
  ~HeldCall() { release(); }
  HeldCall(const HeldCall &) = delete;
  HeldCall &operator=(const HeldCall &) = delete;

  /// Takes a call whose arguments would be found right too, and give the same
  /// sizes; null if there is none.
  KnownCall *find(KnownCalls *calls, const GdnArg *args, int32_t numArgs);
  /// Takes note of checked arguments: in the call at hand, or in place of the
  /// oldest one. The launches are still to be added, before isKnown is set.
  /// Null if there is no place.
  KnownCall *note(KnownCalls *calls, const GdnArg *args);

private:
  bool hold(KnownCall &known);
  void release();

  KnownCall *call = nullptr;
};

} // namespace gdn::runtime

#endif // GDN_LIB_RUNTIME_KNOWNCALLS_H
