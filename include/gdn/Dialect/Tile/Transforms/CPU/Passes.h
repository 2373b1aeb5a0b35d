//===- Passes.h - Tile programs for a CPU -----------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_TILE_TRANSFORMS_CPU_PASSES_H
#define GDN_DIALECT_TILE_TRANSFORMS_CPU_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::gdn::tile {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "gdn/Dialect/Tile/Transforms/CPU/Passes.h.inc"

} // namespace mlir::gdn::tile

#endif // GDN_DIALECT_TILE_TRANSFORMS_CPU_PASSES_H
