//===- StageNotes.cpp - What a function says of its arrays ----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Stage.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
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

/// Notes on the function's results that `value` becomes.
static ArrayNotes readResultNotes(Value value) {
  ArrayNotes notes;
  for (OpOperand &use : value.getUses()) {
    ArrayNotes more;
    auto function =
        dyn_cast_if_present<FunctionOpInterface>(use.getOwner()->getParentOp());
    if (auto cast = dyn_cast<tensor::CastOp>(use.getOwner()))
      more = readResultNotes(cast.getResult());
    else if (auto choice = dyn_cast<scf::IfOp>(use.getOwner()->getParentOp());
             choice && isa<scf::YieldOp>(use.getOwner()))
      more = readResultNotes(choice.getResult(use.getOperandNumber()));
    else if (function && use.getOwner()->hasTrait<OpTrait::ReturnLike>())
      more = makeNotes([&](StringRef name) {
        return function.getResultAttr(use.getOperandNumber(), name);
      });
    notes.isOptional |= more.isOptional;
    notes.isStrided |= more.isStrided;
  }
  return notes;
}

/// The name of a note that there is, for messages.
static StringRef nameOf(ArrayNotes notes) {
  return notes.isOptional ? GDNDialect::getOptionalAttrName()
                          : GDNDialect::getStridedAttrName();
}

/// The states of sequences that a call may have.
static constexpr StringLiteral kStates[] = {"initial_state",  "final_state",
                                            "sequence_state", "d_initial_state",
                                            "d_final_state",  "step_states"};

/// What else a call may be without.
static constexpr StringLiteral kOptional[] = {
    "has_initial_state", "num_accepted", "step_indices", "step_starts"};

/// Checks and keeps what is noted of the array `name`.
static LogicalResult keepNotes(Stage &stage, StringRef name, Type type,
                               ArrayNotes notes) {
  bool isState = llvm::is_contained(kStates, name);
  bool mayHave =
      isState || (llvm::is_contained(kOptional, name) && !notes.isStrided);
  if ((notes.isOptional || notes.isStrided) && !mayHave)
    return stage.op->emitOpError("expected ")
           << nameOf(notes) << " on states alone, got it on " << name;
  if (!notes.isOptional)
    return success();
  if (stage["state_indices"] && isState)
    return stage.op->emitOpError("expected a pool of states that each call "
                                 "has beside state_indices, got ")
           << GDNDialect::getOptionalAttrName() << " on " << name;
  if (name == "step_states")
    return stage.op->emitOpError("expected states after tokens in each call, "
                                 "got ")
           << GDNDialect::getOptionalAttrName() << " on " << name;
  if (!cast<ShapedType>(type).isDynamicDim(0))
    return stage.op->emitOpError("expected ")
           << name << " of a dynamic first extent, since the function says "
           << GDNDialect::getOptionalAttrName() << ", got " << type;
  stage.facts.optionalArrays.push_back(name);
  return success();
}

LogicalResult gdn::readNotes(Stage &stage) {
  if (stage.cuSeqlens)
    if (failed(keepNotes(stage, "cu_seqlens", stage.cuSeqlens.getType(),
                         readArgumentNotes(stage.cuSeqlens))))
      return failure();
  for (NamedInput &input : stage.inputs) {
    input.notes = readArgumentNotes(input.tensor);
    if (failed(
            keepNotes(stage, input.name, input.tensor.getType(), input.notes)))
      return failure();
  }
  for (auto [output, result] :
       llvm::zip_first(stage.outputs, stage.op->getResults())) {
    output.notes = readResultNotes(result);
    if (output.updated)
      output.notes = readArgumentNotes(output.updated);
    if (failed(keepNotes(stage, output.name, output.type, output.notes)))
      return failure();
  }
  return success();
}

/// Whether programs know what functions say of what `op` takes and makes.
static bool isStageOrLaunch(Operation *op) {
  return isa<tile::LaunchOp, ConvertOp>(op) || readStage(op);
}

/// The uses of `tensor`, directly or through casts.
static SmallVector<OpOperand *> usesThroughCasts(Value tensor) {
  SmallVector<OpOperand *> uses;
  SmallVector<Value> values = {tensor};
  for (size_t i = 0; i < values.size(); ++i)
    for (OpOperand &use : values[i].getUses()) {
      if (auto cast = dyn_cast<tensor::CastOp>(use.getOwner()))
        values.push_back(cast.getResult());
      else
        uses.push_back(&use);
    }
  return uses;
}

/// Checks the notes on an argument: of an absent array only programs see that
/// it is absent.
static LogicalResult verifyArgumentNotes(FunctionOpInterface function,
                                         BlockArgument argument) {
  ArrayNotes notes = readArgumentNotes(argument);
  if (!notes.isOptional && !notes.isStrided)
    return success();
  for (OpOperand *use : usesThroughCasts(argument))
    if (!isStageOrLaunch(use->getOwner()) &&
        !isa<tensor::DimOp>(use->getOwner()))
      return function.emitOpError("expected ")
             << nameOf(notes) << " on a state that only stages take, got it on "
             << "argument " << argument.getArgNumber() << ", which '"
             << use->getOwner()->getName() << "' takes";
  return success();
}

/// Checks that stages make what `use` returns, on each side of a branch, and
/// that nothing else takes it. `notes` are those on result `number`.
static LogicalResult verifyMade(FunctionOpInterface function, unsigned number,
                                ArrayNotes notes, OpOperand &use) {
  Value made = use.get();
  while (auto cast = made.getDefiningOp<tensor::CastOp>())
    made = cast.getSource();
  for (OpOperand *other : usesThroughCasts(made))
    if (other != &use)
      return function.emitOpError("expected ")
             << nameOf(notes) << " on a state that is returned alone, got it "
             << "on result " << number << ", which '"
             << other->getOwner()->getName() << "' takes, too";
  if (auto choice = made.getDefiningOp<scf::IfOp>()) {
    unsigned place = cast<OpResult>(made).getResultNumber();
    for (scf::YieldOp side : {choice.thenYield(), choice.elseYield()})
      if (failed(
              verifyMade(function, number, notes, side->getOpOperand(place))))
        return failure();
    return success();
  }
  if (made.getDefiningOp() && isStageOrLaunch(made.getDefiningOp()))
    return success();
  return function.emitOpError("expected ")
         << nameOf(notes) << " on a state that a stage makes, got it on "
         << "result " << number << ", which none makes";
}

/// Checks the notes on a result.
static LogicalResult verifyResultNotes(FunctionOpInterface function,
                                       OpOperand &result) {
  unsigned number = result.getOperandNumber();
  ArrayNotes notes = makeNotes(
      [&](StringRef name) { return function.getResultAttr(number, name); });
  return notes.isOptional || notes.isStrided
             ? verifyMade(function, number, notes, result)
             : success();
}

LogicalResult gdn::verifyNotes(FunctionOpInterface function) {
  if (function.isExternal())
    return success();
  for (BlockArgument argument : function.getArguments())
    if (failed(verifyArgumentNotes(function, argument)))
      return failure();
  for (Block &block : function.getFunctionBody())
    if (!block.empty() && block.back().hasTrait<OpTrait::ReturnLike>())
      for (OpOperand &result : block.back().getOpOperands())
        if (failed(verifyResultNotes(function, result)))
          return failure();
  return success();
}
