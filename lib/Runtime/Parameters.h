//===- Parameters.h - The parameters of a launch ----------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel is launched again and again over arrays of the same types, extents
// and strides. What follows from these (that they are right, the parameters
// that they give, the tensor maps but for an address) is kept with the kernel,
// so that such a launch compares them and writes addresses.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_RUNTIME_PARAMETERS_H
#define GDN_LIB_RUNTIME_PARAMETERS_H

#include "Driver.h"

#include <atomic>

namespace gdn::runtime {

/// Bounds that let a launch work in fixed buffers. A kernel's parameters take
/// at most 4 KiB before PTX 8.1, which is 31 tensor maps and some pointers.
enum : int {
  maxArgs = 64,
  maxParams = 128,
  maxTensorMaps = 31,
  maxSymbols = 40,
  maxRank = 8,
  maxMapRank = 5,
  maxParamBytes = 4096,
  maxSteps = 256,
  maxTemporaries = 64,
  maxLaunches = 64
};

/// The parameters as the driver takes them: a place for each.
struct Parameters {
  alignas(128) unsigned char bytes[maxParamBytes];
  void *places[maxParams];
};

/// What is known of arguments that a launch had.
struct Known {
  /// Types, ranks, extents and strides of more arguments are not kept.
  static constexpr int maxKey = 256;

  /// Their number; 0 where nothing is known.
  int keyLength;
  int64_t key[maxKey];
  /// What must be 0 in the address of each array that has elements.
  uint64_t addressMasks[maxArgs];
  bool hasElements[maxArgs];
  Parameters parameters;
  /// The address in each parameter that is a tensor map: several may be made
  /// of one map.
  const void *addresses[maxParams];

  /// Whether these arguments would be found right, and give the same
  /// parameters but for addresses and scalars.
  bool fits(const GdnKernelDesc &desc, const GdnArg *args,
            int32_t numArgs) const;
  /// Takes note of arguments that have been checked; false if they are too
  /// many.
  bool note(const GdnKernelDesc &desc, const GdnArg *args);
};

/// The last few of a kernel. One thread at a time looks at them; another one
/// that launches meanwhile does without.
struct KnownList {
  static constexpr int size = 4;

  std::atomic_flag isTaken;
  int oldest;
  Known list[size];
};

/// A launch's hold on its kernel's list.
class KnownLaunches {
public:
  explicit KnownLaunches(KnownList &kernels)
      : list(kernels.isTaken.test_and_set(std::memory_order_acquire)
                 ? nullptr
                 : &kernels) {}
  ~KnownLaunches() {
    if (list)
      list->isTaken.clear(std::memory_order_release);
  }
  KnownLaunches(const KnownLaunches &) = delete;
  KnownLaunches &operator=(const KnownLaunches &) = delete;

  /// The entry that fits the arguments, or null.
  Known *find(const GdnKernelDesc &desc, const GdnArg *args, int32_t numArgs);
  /// An entry that takes note of checked arguments, with parameters still to
  /// be written; null if there is none.
  Known *add(const GdnKernelDesc &desc, const GdnArg *args);

private:
  KnownList *list;
};

/// Writes all parameters; the arguments have been checked.
GdnRuntimeStatus writeParameters(const Driver &driver, const GdnKernel &kernel,
                                 const GdnArg *args, void *workspace,
                                 Parameters &parameters);
/// Writes what differs in arguments that fit; on failure nothing is known any
/// more.
GdnRuntimeStatus rewriteParameters(const Driver &driver,
                                   const GdnKernel &kernel, const GdnArg *args,
                                   void *workspace, Known &known);

} // namespace gdn::runtime

#endif // GDN_LIB_RUNTIME_PARAMETERS_H
