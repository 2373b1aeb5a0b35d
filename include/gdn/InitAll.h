//===- InitAll.h - Register dialects, extensions and passes -----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_INITALL_H
#define GDN_INITALL_H

namespace mlir {
class DialectRegistry;

namespace gdn {

/// Registers our dialects and the models of upstream interfaces for their ops.
/// Enough for a host that brings the upstream dialects itself, as mlir-opt
/// does for a plugin.
void registerDialects(DialectRegistry &registry);

/// Registers our passes, conversions and pipelines.
void registerPasses();

/// Registers every dialect that a level may hold: ours and the upstream ones.
void registerAllDialects(DialectRegistry &registry);

/// Registers the models of upstream interfaces that the way down to LLVM IR
/// asks for: bufferization, tiling, subsets, conversion and translation.
void registerAllExtensions(DialectRegistry &registry);

/// Registers our passes and the upstream ones that our pipelines are made of.
void registerAllPasses();

} // namespace gdn
} // namespace mlir

#endif // GDN_INITALL_H
