//===- NamedArguments.h - Block arguments that keep their names -*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Function-like ops of several dialects keep the names of their arguments in an
// attribute, so that a dump stays readable.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_NAMEDARGUMENTS_H
#define GDN_DIALECT_NAMEDARGUMENTS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::gdn {

/// The names, without their %, of parsed arguments.
inline ArrayAttr getNames(Builder &builder,
                          ArrayRef<OpAsmParser::Argument> arguments) {
  SmallVector<Attribute> names;
  for (const OpAsmParser::Argument &argument : arguments)
    names.push_back(builder.getStringAttr(argument.ssaName.name.drop_front()));
  return builder.getArrayAttr(names);
}

/// Gives arguments the names that `getNames` kept, if there are any.
inline void setNames(Block::BlockArgListType arguments,
                     std::optional<ArrayAttr> names,
                     OpAsmSetValueNameFn setName) {
  if (names)
    for (auto [argument, name] : llvm::zip(arguments, *names))
      setName(argument, cast<StringAttr>(name).getValue());
}

/// Prints `(%a: type, ...)`, or `(%a, ...)`.
inline void printArguments(OpAsmPrinter &printer,
                           Block::BlockArgListType arguments,
                           bool withTypes = true) {
  printer << '(';
  llvm::interleaveComma(arguments, printer, [&](BlockArgument argument) {
    printer.printRegionArgument(argument, {}, /*omitType=*/!withTypes);
  });
  printer << ')';
}

/// Checks that there is a name for each argument, or no names at all.
inline LogicalResult verifyNames(Operation *op,
                                 Block::BlockArgListType arguments,
                                 std::optional<ArrayAttr> names) {
  if (names && names->size() != arguments.size())
    return op->emitOpError("expected ")
           << arguments.size() << " argument names, got " << names->size();
  return success();
}

} // namespace mlir::gdn

#endif // GDN_DIALECT_NAMEDARGUMENTS_H
