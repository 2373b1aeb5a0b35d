//===- Convert.h - Programs that convert whole arrays -----------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_CONVERT_H
#define GDN_LIB_CONVERSION_GDNTOTILE_CONVERT_H

#include "gdn/Dialect/GDN/IR/GDN.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::gdn {

/// Replaces a conversion by a launch of its program, which is put into
/// `module`, in front of the function that holds the op.
void replaceByLaunch(ConvertOp op, ModuleOp module, SymbolTable &symbols);

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_CONVERT_H
