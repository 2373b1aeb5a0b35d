//===- Convert.cpp - Arrays for other functions ---------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GDN/IR/GDN.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::gdn;

/// The operands that a conversion has.
static StringRef listOperands(ConversionKind kind) {
  switch (kind) {
  case ConversionKind::Copy:
  case ConversionKind::Transpose:
    return "input";
  case ConversionKind::Cast:
  case ConversionKind::LogitToValue:
    return "input, like, factor";
  case ConversionKind::Fill:
    return "like, factor";
  case ConversionKind::LinearToLog:
    return "input, like";
  case ConversionKind::SoftplusToLog:
    return "input, like, a_log, dt_bias";
  }
  llvm_unreachable("covered switch");
}

LogicalResult ConvertOp::verify() {
  SmallVector<StringRef> got;
  using Operand = std::pair<StringRef, Value>;
  for (auto [name, value] :
       {Operand("input", getInput()), Operand("like", getLike()),
        Operand("factor", getFactor()), Operand("a_log", getALog()),
        Operand("dt_bias", getDtBias())})
    if (value)
      got.push_back(name);
  StringRef expected = listOperands(getKind());
  if (llvm::join(got, ", ") != expected)
    return emitOpError("expected the operands ")
           << expected << " of a " << stringifyConversionKind(getKind())
           << ", got " << llvm::join(got, ", ");
  if (getLike()) {
    if (getLike().getType() == getType())
      return success();
    return emitOpError("expected like of the result's type ")
           << getType() << ", got " << getLike().getType();
  }
  Type element = getInput().getType().getElementType();
  if (element != getType().getElementType())
    return emitOpError("expected elements of the input's type ")
           << element << ", got " << getType();
  if (element.isF16())
    return emitOpError("expected elements of bf16 or f32, got f16");
  return success();
}
