//===- Arch.h - Numbers of the hardware -------------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_IR_ARCH_H
#define GDN_DIALECT_WARP_IR_ARCH_H

#include <cstdint>

namespace mlir::gdn::warp {

/// Numbers of one chip. Sources: "guide" is the CUDA C++ Programming Guide 13.0
/// (compute capabilities), "ptx" the PTX ISA 8.7.
struct Arch {
  /// Name of the target for LLVM and ptxas.
  const char *chip;
  /// Threads of a warp (guide, table of compute capabilities).
  int64_t warpThreads;
  /// Warps that run a wgmma together (ptx, "Warpgroup").
  int64_t warpgroupWarps;
  /// Threads of a CTA (guide).
  int64_t maxThreads;
  /// Threads of all CTAs of a multiprocessor (guide).
  int64_t maxResidentThreads;
  /// 32-bit registers of a multiprocessor (guide).
  int64_t registers;
  /// Registers that a thread can have at launch (guide).
  int64_t maxThreadRegisters;
  /// Registers come in units of this many a thread (ptx, "setmaxnreg").
  int64_t registerUnit;
  /// Least and greatest operand of setmaxnreg (ptx, "setmaxnreg").
  int64_t minSetRegisters, maxSetRegisters;
  /// Shared memory of a CTA in bytes, opted in (guide).
  int64_t sharedBytes;
  /// CTAs of a cluster that every device can launch (guide).
  int64_t maxCluster;
  /// Rows of a wgmma (ptx, "wgmma.mma_async").
  int64_t productRows;
  /// Depth of a wgmma with 16-bit operands (ptx).
  int64_t productDepth;
  /// Columns of a wgmma: multiples of the unit up to the maximum (ptx).
  int64_t productColumnUnit, maxProductColumns;
  /// Bytes of a row of a swizzled panel (ptx, "Swizzling Modes").
  int64_t panelBytes;
  /// Alignment of a swizzled panel: eight rows, after which the pattern
  /// repeats.
  int64_t swizzleAlignment;
  /// Elements of a tensor map's box in each dimension, and dimensions (ptx).
  int64_t maxBox, maxTensorMapRank;
  /// Bytes of a copy from shared memory to shared memory: a multiple of this
  /// (ptx, "cp.async.bulk").
  int64_t copyUnit;
  /// Named barriers of a CTA (ptx, "bar").
  int64_t namedBarriers;
  /// Bytes of an mbarrier, and arrivals of a phase (ptx, "mbarrier").
  int64_t barrierBytes, maxArrivals;
  /// Bytes of a line of the L2 cache (guide, "Device Memory Accesses").
  int64_t cacheLineBytes;
  /// Multiprocessors of an H100 SXM and of an H200 (their data sheets).
  int64_t multiprocessors;
  /// FLOP of 16-bit products and bytes of memory that a second has. Measured on
  /// an H200: a large GEMM, a large copy (docs/Performance.md).
  double flopPerSecond, bytesPerSecond;

  /// Slots of a channel, of which each has two barriers.
  constexpr int64_t maxSlots() const {
    return sharedBytes / (2 * barrierBytes);
  }
  /// Registers of each of a CTA's threads at launch, where so many CTAs are on
  /// a multiprocessor.
  constexpr int64_t launchRegisters(int64_t threads, int64_t ctas) const {
    int64_t fair = registers / (threads * ctas);
    int64_t count = fair < maxThreadRegisters ? fair : maxThreadRegisters;
    return count - count % registerUnit;
  }
  /// Rows of a wgmma's result that one warp holds.
  constexpr int64_t warpRows() const { return productRows / warpgroupWarps; }
};

/// NVIDIA H100, H200.
inline constexpr Arch kSm90a = {
    /*chip=*/"sm_90a",
    /*warpThreads=*/32,
    /*warpgroupWarps=*/4,
    /*maxThreads=*/1024,
    /*maxResidentThreads=*/2048,
    /*registers=*/65536,
    /*maxThreadRegisters=*/255,
    /*registerUnit=*/8,
    /*minSetRegisters=*/24,
    /*maxSetRegisters=*/256,
    /*sharedBytes=*/232448,
    /*maxCluster=*/8,
    /*productRows=*/64,
    /*productDepth=*/16,
    /*productColumnUnit=*/8,
    /*maxProductColumns=*/256,
    /*panelBytes=*/128,
    /*swizzleAlignment=*/1024,
    /*maxBox=*/256,
    /*maxTensorMapRank=*/5,
    /*copyUnit=*/16,
    /*namedBarriers=*/16,
    /*barrierBytes=*/8,
    /*maxArrivals=*/(1 << 20) - 1,
    /*cacheLineBytes=*/128,
    /*multiprocessors=*/132,
    /*flopPerSecond=*/790e12,
    /*bytesPerSecond=*/4.3e12,
};

} // namespace mlir::gdn::warp

#endif // GDN_DIALECT_WARP_IR_ARCH_H
