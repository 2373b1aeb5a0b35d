//===- StageNotes.cpp - What a function says of its arrays ----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Stage.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::gdn;

/// The notes that `get` finds by their names.
static ArrayNotes makeNotes(llvm::function_ref<Attribute(StringRef name)> get) {
  return {static_cast<bool>(get(GDNDialect::getOptionalAttrName())),
          static_cast<bool>(get(GDNDialect::getStridedAttrName()))};
}

/// Notes on the function's argument that `tensor` is; casts change nothing.
static ArrayNotes readArgumentNotes(Value tensor) {
  while (auto cast = tensor.getDefiningOp<tensor::CastOp>())
    tensor = cast.getSource();
  auto argument = dyn_cast<BlockArgument>(tensor);
  auto function = argument ? dyn_cast_if_present<FunctionOpInterface>(
                                 argument.getOwner()->getParentOp())
                           : FunctionOpInterface();
  if (!function)
    return {};
  return makeNotes([&](StringRef name) {
    return function.getArgAttr(argument.getArgNumber(), name);
  });
}

/// Notes on the function's result that `value` becomes.
static ArrayNotes readResultNotes(Value value) {
  for (OpOperand &use : value.getUses()) {
    if (auto cast = dyn_cast<tensor::CastOp>(use.getOwner()))
      return readResultNotes(cast.getResult());
    auto function =
        dyn_cast_if_present<FunctionOpInterface>(use.getOwner()->getParentOp());
    if (function && use.getOwner()->hasTrait<OpTrait::ReturnLike>())
      return makeNotes([&](StringRef name) {
        return function.getResultAttr(use.getOperandNumber(), name);
      });
  }
  return {};
}

/// The states of sequences that a call may have.
static constexpr StringLiteral kStates[] = {"initial_state", "final_state",
                                            "sequence_state", "d_initial_state",
                                            "d_final_state"};

/// Checks and keeps what is noted of the array `name`.
static LogicalResult keepNotes(Stage &stage, StringRef name, Type type,
                               ArrayNotes notes) {
  bool isState = llvm::is_contained(kStates, name);
  if ((notes.isOptional || notes.isStrided) && !isState)
    return stage.op->emitOpError("expected ")
           << (notes.isOptional ? GDNDialect::getOptionalAttrName()
                                : GDNDialect::getStridedAttrName())
           << " on states alone, got it on " << name;
  if (!notes.isOptional)
    return success();
  if (!cast<ShapedType>(type).isDynamicDim(0))
    return stage.op->emitOpError("expected ")
           << name << " of a dynamic first extent, since the function says "
           << GDNDialect::getOptionalAttrName() << ", got " << type;
  stage.facts.optionalStates.push_back(name);
  return success();
}

LogicalResult gdn::readNotes(Stage &stage) {
  for (NamedInput &input : stage.inputs) {
    input.notes = readArgumentNotes(input.tensor);
    if (failed(
            keepNotes(stage, input.name, input.tensor.getType(), input.notes)))
      return failure();
  }
  for (auto [output, result] :
       llvm::zip_first(stage.outputs, stage.op->getResults())) {
    output.notes = readResultNotes(result);
    if (failed(keepNotes(stage, output.name, output.type, output.notes)))
      return failure();
  }
  return success();
}
