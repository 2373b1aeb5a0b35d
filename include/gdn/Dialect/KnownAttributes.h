//===- KnownAttributes.h - Ops that refuse unknown attributes ---*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_KNOWNATTRIBUTES_H
#define GDN_DIALECT_KNOWNATTRIBUTES_H

#include "mlir/IR/OpDefinition.h"

namespace mlir::gdn {

/// Trait of ops that have the attributes of their definition, and others only
/// under a dialect's name ("gdn_tile.step"). So a misspelled one is an error
/// and not silently the default.
template <typename ConcreteType>
class OnlyKnownAttributes
    : public OpTrait::TraitBase<ConcreteType, OnlyKnownAttributes> {
public:
  static LogicalResult verifyTrait(Operation *op) {
    for (NamedAttribute attribute : op->getDiscardableAttrs())
      if (!attribute.getName().strref().contains('.'))
        return op->emitOpError("expected attributes of the op, or under a "
                               "dialect's name, got '")
               << attribute.getName().strref() << "'";
    return success();
  }
};

} // namespace mlir::gdn

#endif // GDN_DIALECT_KNOWNATTRIBUTES_H
