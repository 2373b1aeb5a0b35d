//===- CPUArch.h - What the CPU lowering knows of processors ----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_TILE_TRANSFORMS_CPU_CPUARCH_H
#define GDN_DIALECT_TILE_TRANSFORMS_CPU_CPUARCH_H

#include <cstdint>

namespace mlir::gdn::tile {

/// Register tiles for one vector width, in f32 elements.
///
/// A product keeps rows x columns accumulators in registers. There must be
/// enough of them to cover the latency of a fused multiply-add (4 cycles, two a
/// cycle: Intel Optimization Manual 15, AMD Zen 4 Optimization Guide 2.11), and
/// with the row of the right operand and one broadcast they must fit the
/// register file: 32 zmm for 512 bits, 16 ymm or xmm below (Intel SDM 1, 3.7).
struct CPUArch {
  /// Width of a vector register in bits.
  int64_t vectorBits;
  /// Elements of a vector register.
  int64_t lanes;
  /// Accumulator registers that a product uses at most.
  int64_t accumulators;
  /// Most rows of accumulators: each costs a broadcast a step.
  int64_t rows;
};

/// 8 x 32 accumulators of 512 bits, 4 x 16 of 256 bits, 4 x 8 of 128 bits.
inline constexpr CPUArch kCPUArchs[] = {
    {512, 16, 16, 8}, {256, 8, 8, 4}, {128, 4, 8, 4}};

/// The entry for registers of at most `vectorBits`; the narrowest if there is
/// none.
inline const CPUArch &getCPUArch(int64_t vectorBits) {
  for (const CPUArch &arch : kCPUArchs)
    if (arch.vectorBits <= vectorBits)
      return arch;
  return kCPUArchs[2];
}

/// Whether there is an entry for registers of just these bits.
inline bool isVectorBits(int64_t vectorBits) {
  return getCPUArch(vectorBits).vectorBits == vectorBits;
}

/// Vector register width of the CPU that this process runs on.
int64_t getHostVectorBits();

} // namespace mlir::gdn::tile

#endif // GDN_DIALECT_TILE_TRANSFORMS_CPU_CPUARCH_H
