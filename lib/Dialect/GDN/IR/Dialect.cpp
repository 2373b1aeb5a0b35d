//===- Dialect.cpp - The gdn dialect --------------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GDN/IR/GDN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::gdn;

#include "gdn/Dialect/GDN/IR/Dialect.cpp.inc"
#include "gdn/Dialect/GDN/IR/Enums.cpp.inc"
#include "gdn/Dialect/GDN/IR/Interfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "gdn/Dialect/GDN/IR/Attributes.cpp.inc"

void GDNDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "gdn/Dialect/GDN/IR/Attributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "gdn/Dialect/GDN/IR/Ops.cpp.inc"
      >();
}
