//===- Arch.h - Numbers of the hardware -------------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_IR_ARCH_H
#define GDN_DIALECT_WARP_IR_ARCH_H

#include "gdn/Dialect/Warp/IR/Formats.h"

#include <cstdint>
#include <string_view>

namespace mlir::gdn::warp {

/// Numbers of one chip; those of PTX's formats are in Formats.h. "guide" is the
/// CUDA C++ Programming Guide 13.0 (compute capabilities).
struct Arch {
  /// Name of the target for LLVM and ptxas.
  std::string_view chip;
  /// 10 * major + minor of the devices that run it.
  int32_t computeCapability;
  /// Threads of a CTA (guide).
  int64_t maxThreads;
  /// Threads of all CTAs of a multiprocessor (guide).
  int64_t maxResidentThreads;
  /// 32-bit registers of a multiprocessor (guide).
  int64_t registers;
  /// Registers that a thread can have at launch (guide).
  int64_t maxThreadRegisters;
  /// Shared memory of a CTA in bytes, opted in (guide).
  int64_t sharedBytes;
  /// CTAs of a cluster that every device can launch (guide).
  int64_t maxCluster;
  /// Bytes of a line of the L2 cache (guide, "Device Memory Accesses").
  int64_t cacheLineBytes;
  /// Multiprocessors of an H100 SXM and of an H200 (their data sheets).
  int64_t multiprocessors;
  /// FLOP of 16-bit products and bytes of memory that a second has. Measured on
  /// an H200: a large GEMM, a large copy (docs/Performance.md).
  double flopPerSecond, bytesPerSecond;

  /// Slots of a channel, of which each has two barriers.
  constexpr int64_t maxSlots() const {
    return sharedBytes / (2 * format::kBarrierBytes);
  }
  /// Registers of each of a CTA's threads at launch, where so many CTAs are on
  /// a multiprocessor.
  constexpr int64_t launchRegisters(int64_t threads, int64_t ctas) const {
    int64_t fair = registers / (threads * ctas);
    int64_t count = fair < maxThreadRegisters ? fair : maxThreadRegisters;
    return count - count % format::kRegisterUnit;
  }
};

/// The chips that there are kernels for, a row each; the first one is meant
/// where nobody says which.
inline constexpr Arch kArchs[] = {
    // NVIDIA H100, H200
    {
        /*chip=*/"sm_90a",
        /*computeCapability=*/90,
        /*maxThreads=*/1024,
        /*maxResidentThreads=*/2048,
        /*registers=*/65536,
        /*maxThreadRegisters=*/255,
        /*sharedBytes=*/232448,
        /*maxCluster=*/8,
        /*cacheLineBytes=*/128,
        /*multiprocessors=*/132,
        /*flopPerSecond=*/790e12,
        /*bytesPerSecond=*/4.3e12,
    }};

/// The chip of that name; null if the table has none.
constexpr const Arch *findArch(std::string_view chip) {
  for (const Arch &arch : kArchs)
    if (arch.chip == chip)
      return &arch;
  return nullptr;
}

/// The chip that is meant where nobody says which.
constexpr const Arch &getDefaultArch() { return kArchs[0]; }

} // namespace mlir::gdn::warp

#endif // GDN_DIALECT_WARP_IR_ARCH_H
