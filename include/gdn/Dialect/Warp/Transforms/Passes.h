//===- Passes.h - Passes of the gdn_warp dialect ----------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_WARP_TRANSFORMS_PASSES_H
#define GDN_DIALECT_WARP_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::gdn::warp {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "gdn/Dialect/Warp/Transforms/Passes.h.inc"

} // namespace mlir::gdn::warp

#endif // GDN_DIALECT_WARP_TRANSFORMS_PASSES_H
