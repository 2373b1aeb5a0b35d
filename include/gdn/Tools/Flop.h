//===- Flop.h - Work of a layer ---------------------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TOOLS_FLOP_H
#define GDN_TOOLS_FLOP_H

#include "gdn/Tools/HostArray.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::gdn::tools {

/// FLOP of a token and value head of a layer op, as `countFlop` counts them.
double flopPerToken(Operation *op, double k, double v);

/// FLOP of all layer ops of `func` on inputs of these shapes: the products of
/// 64-token chunks, 4 C (K + V) + 6 K V a token and value head forward,
/// 11 C (K + V) + 16 K V backward, 8 K V for the recurrent op; 163,840 and
/// 442,368 at K = V = 128.
double countFlop(func::FuncOp func, llvm::ArrayRef<HostArray> inputs);

} // namespace mlir::gdn::tools

#endif // GDN_TOOLS_FLOP_H
