//===- Formats.h - Numbers of PTX's instructions and formats ----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the PTX ISA 8.7 fixes for an instruction or a data format, whatever chip
// runs it: types, attributes and ops of gdn_warp are defined by these numbers.
// What differs from chip to chip is in Arch.h. In quotes: the section of the
// PTX ISA.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_IR_FORMATS_H
#define GDN_DIALECT_WARP_IR_FORMATS_H

#include <cstdint>
#include <string_view>

namespace mlir::gdn::warp::format {

/// Threads of a warp ("Cooperative Thread Arrays", WARP_SZ).
inline constexpr int64_t kWarpThreads = 32;
/// Warps that run a wgmma together ("Asynchronous Warpgroup Level
/// Instructions").
inline constexpr int64_t kWarpgroupWarps = 4;

/// Rows of a wgmma, its depth with 16-bit operands, and its columns: multiples
/// of the unit up to the maximum ("wgmma.mma_async", m64nNk16).
inline constexpr int64_t kWgmmaRows = 64;
inline constexpr int64_t kWgmmaDepth = 16;
inline constexpr int64_t kWgmmaColumnUnit = 8;
inline constexpr int64_t kMaxWgmmaColumns = 256;
/// Rows of a wgmma's result that one warp holds ("Register Fragments for
/// wgmma.mma_async.m64nNk16").
inline constexpr int64_t kWarpRows = kWgmmaRows / kWarpgroupWarps;

/// Bytes of a row of a 128-byte-swizzled panel ("Swizzling Modes").
inline constexpr int64_t kPanelBytes = 128;
/// Alignment of such a panel: eight rows, after which the pattern repeats.
inline constexpr int64_t kSwizzleAlignment = 8 * kPanelBytes;

/// Elements of a tensor map's box in each dimension, and dimensions
/// ("Tensors").
inline constexpr int64_t kMaxBox = 256;
inline constexpr int64_t kMaxTensorMapRank = 5;
/// Bytes of a copy from shared memory to shared memory: a multiple of this
/// ("cp.async.bulk").
inline constexpr int64_t kBulkCopyUnit = 16;

/// Bytes of an mbarrier, and arrivals of a phase ("mbarrier").
inline constexpr int64_t kBarrierBytes = 8;
inline constexpr int64_t kMaxArrivals = (1 << 20) - 1;

/// The operand of setmaxnreg: multiples of the unit in this range
/// ("setmaxnreg").
inline constexpr int64_t kRegisterUnit = 8;
inline constexpr int64_t kMinSetRegisters = 24;
inline constexpr int64_t kMaxSetRegisters = 256;

/// Whether PTX can have a kernel or array of that name ("Identifiers"). LLVM
/// writes no name with a % in front, and others as they are.
constexpr bool isName(std::string_view name) {
  bool hasOnlyKnown = true;
  for (char c : name)
    hasOnlyKnown &= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                    (c >= '0' && c <= '9') || c == '_' || c == '$';
  if (name.empty() || !hasOnlyKnown)
    return false;
  bool beginsWithDigit = name.front() >= '0' && name.front() <= '9';
  bool beginsWithSign = name.front() == '_' || name.front() == '$';
  return !beginsWithDigit && (!beginsWithSign || name.size() > 1);
}
/// What `isName` asks for, for messages.
inline constexpr const char *kNames =
    "letters, digits, _ and $, the first one no digit";

} // namespace mlir::gdn::warp::format

#endif // GDN_DIALECT_WARP_IR_FORMATS_H
