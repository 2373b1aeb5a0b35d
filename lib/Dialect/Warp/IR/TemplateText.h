//===- TemplateText.h - Text of schedule templates --------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_WARP_IR_TEMPLATETEXT_H
#define GDN_LIB_DIALECT_WARP_IR_TEMPLATETEXT_H

#include "gdn/Dialect/Warp/IR/Warp.h"

namespace mlir::gdn::warp {

/// What the format of gdn_warp.schedule_template names as custom<...>.
ParseResult parseRoleTemplates(OpAsmParser &parser, ArrayAttr &roles);
void printRoleTemplates(OpAsmPrinter &printer, Operation *, ArrayAttr roles);
ParseResult parseChannelTemplates(OpAsmParser &parser, ArrayAttr &channels);
void printChannelTemplates(OpAsmPrinter &printer, Operation *,
                           ArrayAttr channels);
ParseResult parseCondition(OpAsmParser &parser, ConditionAttr &when);
void printCondition(OpAsmPrinter &printer, Operation *, ConditionAttr when);

} // namespace mlir::gdn::warp

#endif // GDN_LIB_DIALECT_WARP_IR_TEMPLATETEXT_H
