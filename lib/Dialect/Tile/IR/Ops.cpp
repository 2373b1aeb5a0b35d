//===- Ops.cpp - Verifiers, effects and syntax of the tile ops ------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tile;

using EffectList = SmallVectorImpl<MemoryEffects::EffectInstance>;

//===----------------------------------------------------------------------===//
// LaunchOp
//===----------------------------------------------------------------------===//

LogicalResult LaunchOp::verify() {
  if (getGrid().size() < ProgramOp::kMinGridRank)
    return emitOpError("expected a grid of at least ")
           << ProgramOp::kMinGridRank
           << " sizes (sequences, value heads, V tiles), got "
           << getGrid().size();
  // So no program launches itself, whatever is between.
  auto function = (*this)->getParentOfType<FunctionOpInterface>();
  if (!function || !isa_and_present<ModuleOp>(function->getParentOp()))
    return emitOpError("expected to be in a function of a module, got parent ")
           << (*this)->getParentOp()->getName();
  return success();
}

/// Whether a program whose argument is `declared` can take `given`: the same
/// scalar type, or an array of the same elements and compatible shape. Strides
/// are a matter of bufferization.
static bool canTake(Type declared, Type given) {
  auto declaredArray = dyn_cast<MemRefType>(declared);
  if (!declaredArray || !isa<RankedTensorType, MemRefType>(given))
    return declared == given;
  auto givenArray = cast<ShapedType>(given);
  return declaredArray.getElementType() == givenArray.getElementType() &&
         succeeded(verifyCompatibleShape(declaredArray, givenArray));
}

/// Checks one list of arrays of a launch against the program's.
static LogicalResult verifyArrays(LaunchOp launch, ProgramOp program,
                                  StringRef what, TypeRange given,
                                  Block::BlockArgListType declared) {
  auto note = [&](InFlightDiagnostic &error) -> LogicalResult {
    error.attachNote(program.getLoc()) << "program declared here";
    return error;
  };
  if (given.size() != declared.size()) {
    InFlightDiagnostic error = launch.emitOpError("expected ")
                               << declared.size() << " " << what << " for @"
                               << program.getSymName() << ", got "
                               << given.size();
    return note(error);
  }
  for (auto [index, type] : llvm::enumerate(given))
    if (Type expected = declared[index].getType(); !canTake(expected, type)) {
      InFlightDiagnostic error = launch.emitOpError("expected ")
                                 << what << " #" << index << " to fit "
                                 << expected << ", got " << type;
      return note(error);
    }
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  Operation *target =
      symbolTable.lookupNearestSymbolFrom(*this, getProgramAttr());
  // On the way down programs become functions, or kernels of another dialect,
  // while launches stay.
  if (isa_and_present<FunctionOpInterface>(target) ||
      (target && target->hasTrait<OpTrait::IsIsolatedFromAbove>() &&
       target->getDialect() != (*this)->getDialect()))
    return success();
  auto program = dyn_cast_if_present<ProgramOp>(target);
  if (!program)
    return emitOpError("expected the symbol of a program, got ")
           << getProgramAttr();
  if (getGrid().size() != static_cast<size_t>(program.getGridRank())) {
    InFlightDiagnostic error = emitOpError("expected a grid of ")
                               << program.getGridRank() << " sizes for @"
                               << program.getSymName() << ", got "
                               << getGrid().size();
    error.attachNote(program.getLoc()) << "program declared here";
    return error;
  }
  if (failed(verifyArrays(*this, program, "inputs", getInputs().getTypes(),
                          program.getInputs())))
    return failure();
  return verifyArrays(*this, program, "outs", getOutputs().getTypes(),
                      program.getOutputs());
}

void LaunchOp::getEffects(EffectList &effects) {
  for (OpOperand &input : getInputsMutable())
    if (isa<MemRefType>(input.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), &input);
  for (OpOperand &output : getOutputsMutable())
    if (isa<MemRefType>(output.get().getType()))
      effects.emplace_back(MemoryEffects::Write::get(), &output);
}

//===----------------------------------------------------------------------===//
// LoadOp and StoreOp
//===----------------------------------------------------------------------===//

static LogicalResult verifyOffsets(Operation *op, MemRefType array,
                                   size_t offsets) {
  if (static_cast<int64_t>(offsets) == array.getRank())
    return success();
  return op->emitOpError("expected ")
         << array.getRank() << " offsets, one a dimension of the array, got "
         << offsets;
}

/// Checks what a load and a store have in common: one offset a dimension of the
/// array, one axis a dimension of the tile, equal element types, and `end` and
/// `dim` together.
static LogicalResult verifyAccess(Operation *op, MemRefType array,
                                  RankedTensorType tile, size_t offsets,
                                  ArrayRef<int64_t> axes, bool hasEnd,
                                  std::optional<uint64_t> dim) {
  if (failed(verifyArrayOrTile(op, array, ElementLevel::Tile)) ||
      failed(verifyOffsets(op, array, offsets)))
    return failure();
  if (static_cast<int64_t>(axes.size()) != tile.getRank())
    return op->emitOpError("expected ")
           << tile.getRank() << " axes, one a dimension of the tile, got "
           << axes.size();
  llvm::SmallDenseSet<int64_t> seen;
  for (int64_t axis : axes)
    if (axis < 0 || axis >= array.getRank() || !seen.insert(axis).second)
      return op->emitOpError("expected distinct axes in [0, ")
             << array.getRank() << "), got " << axis;
  if (array.getElementType() != tile.getElementType())
    return op->emitOpError("expected a tile of the array's element type ")
           << array.getElementType() << ", got " << tile.getElementType();
  if (hasEnd != dim.has_value())
    return op->emitOpError("expected `end` and `dim` together, got only one");
  if (dim && !llvm::is_contained(axes, static_cast<int64_t>(*dim)))
    return op->emitOpError("expected `dim` to be one of the axes, got ")
           << static_cast<int64_t>(*dim);
  return success();
}

LogicalResult LoadOp::verify() {
  return verifyAccess(*this, getSource().getType(), getResult().getType(),
                      getOffsets().size(), getAxes(), bool(getEnd()), getDim());
}

void LoadOp::getEffects(EffectList &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getSourceMutable());
}

LogicalResult StoreOp::verify() {
  return verifyAccess(*this, getTarget().getType(), getTile().getType(),
                      getOffsets().size(), getAxes(), bool(getEnd()), getDim());
}

void StoreOp::getEffects(EffectList &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), &getTargetMutable());
}

//===----------------------------------------------------------------------===//
// ClearOp
//===----------------------------------------------------------------------===//

LogicalResult ClearOp::verify() {
  MemRefType array = getArray().getType();
  if (failed(verifyOffsets(*this, array, getOffsets().size())))
    return failure();
  if (static_cast<int64_t>(getDim()) < 0 ||
      static_cast<int64_t>(getDim()) >= array.getRank() - 1)
    return emitOpError("expected `dim` to be a dimension before the last one, "
                       "got ")
           << static_cast<int64_t>(getDim());
  if (static_cast<int64_t>(getColumns()) < 1)
    return emitOpError("expected at least one column, got ")
           << static_cast<int64_t>(getColumns());
  return success();
}

void ClearOp::getEffects(EffectList &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), &getArrayMutable());
}

//===----------------------------------------------------------------------===//
// ReportOp and AwaitReportOp
//===----------------------------------------------------------------------===//

LogicalResult ReportOp::verify() {
  return verifyOffsets(*this, getArray().getType(), getOffsets().size());
}

LogicalResult AwaitReportOp::verify() {
  int64_t rank = getArray().getType().getRank(), offsets = getOffsets().size();
  if (offsets > 0 && offsets == rank - 1)
    return success();
  return emitOpError("expected an offset for each dimension but the last one "
                     "of an array of two or more, got ")
         << offsets << " for " << rank << " dimensions";
}

//===----------------------------------------------------------------------===//
// ScanOp, RebaseOp, RepeatOp, ClusterSumOp, CausalOp, DiagonalOp, SolveOp and
// TriInverseOp
//===----------------------------------------------------------------------===//

LogicalResult ScanOp::verify() {
  int64_t rank = getResult().getType().getRank();
  if (getAxis() >= static_cast<uint64_t>(rank))
    return emitOpError("expected an axis in [0, ")
           << rank << "), got " << static_cast<int64_t>(getAxis());
  return success();
}

/// Checks the blocks of an op along an axis of its tile.
template <typename Op> static LogicalResult verifyBlocks(Op op) {
  RankedTensorType tile = op.getResult().getType();
  auto axis = static_cast<int64_t>(op.getAxis()),
       block = static_cast<int64_t>(op.getBlock());
  if (axis < 0 || axis >= tile.getRank())
    return op.emitOpError("expected an axis in [0, ")
           << tile.getRank() << "), got " << axis;
  if (block < 1 || tile.getDimSize(axis) % block != 0)
    return op.emitOpError("expected blocks that divide ")
           << tile.getDimSize(axis) << " elements, got blocks of " << block;
  return success();
}

LogicalResult RepeatOp::verify() { return verifyBlocks(*this); }

LogicalResult RebaseOp::verify() {
  if (failed(verifyBlocks(*this)))
    return failure();
  auto block = static_cast<int64_t>(getBlock()),
       at = static_cast<int64_t>(getAt());
  if (at < 0 || at >= block)
    return emitOpError("expected an element in [0, ")
           << block << "), got " << at;
  return success();
}

LogicalResult ClusterSumOp::verify() {
  auto items = static_cast<int64_t>(getItems());
  if (items < 2 || items > kMostItems || !llvm::isPowerOf2_64(items))
    return emitOpError("expected 2, 4 or 8 items, got ") << items;
  RankedTensorType source = getSource().getType(), result = getType();
  bool fits = source.getRank() == 2 && result.getRank() == 2 &&
              source.getElementType() == result.getElementType() &&
              source.getDimSize(0) == result.getDimSize(0) &&
              source.getDimSize(1) == items * result.getDimSize(1);
  if (fits)
    return success();
  return emitOpError("expected a result with the rows and 1/")
         << items << " of the columns of " << source << ", got " << result;
}

/// Checks that a tile is C x C.
static LogicalResult verifySquare(Operation *op, RankedTensorType tile) {
  if (tile.getRank() != 2 || tile.getDimSize(0) != tile.getDimSize(1))
    return op->emitOpError("expected a square tile, got ") << tile;
  return success();
}

LogicalResult CausalOp::verify() {
  return verifySquare(*this, getResult().getType());
}

void DiagonalOp::build(OpBuilder &b, OperationState &state, Value source) {
  auto tile = cast<RankedTensorType>(source.getType());
  build(b, state, tile.clone(tile.getShape().take_front()), source);
}

LogicalResult DiagonalOp::verify() {
  RankedTensorType source = getSource().getType();
  if (failed(verifySquare(*this, source)))
    return failure();
  RankedTensorType expected = source.clone(source.getShape().take_front());
  if (getType() == expected)
    return success();
  return emitOpError("expected a result of type ")
         << expected << ", got " << getType();
}

/// Checks the type that a solve's merges take.
static LogicalResult verifyMergeType(Operation *op, Type type) {
  if (!type.isF16() && !type.isBF16() && !type.isF32())
    return op->emitOpError("expected merge type f16, bf16 or f32, got ")
           << type;
  return success();
}

LogicalResult SolveOp::verify() {
  RankedTensorType scores = getScores().getType(), beta = getBeta().getType();
  if (failed(verifySquare(*this, scores)))
    return failure();
  if (beta.getRank() != 1 || beta.getDimSize(0) != scores.getDimSize(0))
    return emitOpError("expected beta to be a tile of ")
           << scores.getDimSize(0) << " elements, got " << beta;
  return verifyMergeType(*this, getMergeType());
}

LogicalResult TriInverseOp::verify() {
  RankedTensorType source = getSource().getType(),
                   result = getResult().getType();
  if (failed(verifySquare(*this, source)))
    return failure();
  if (source.getShape() != result.getShape())
    return emitOpError("expected a result of the operand's shape, got ")
           << source << " and " << result;
  Type element = source.getElementType();
  if (!element.isF32() && element != getMergeType())
    return emitOpError("expected an operand of f32 or of the merge type, got ")
           << element << " and " << getMergeType();
  return verifyMergeType(*this, getMergeType());
}

#define GET_OP_CLASSES
#include "gdn/Dialect/Tile/IR/Ops.cpp.inc"
