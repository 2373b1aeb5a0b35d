//===- GDNToTile.cpp - Write the program of every stage op ----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Conversion/Passes.h"

#include "Convert.h"
#include "Launch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/SymbolTable.h"

#define DEBUG_TYPE "convert-gdn-to-tile"

namespace mlir::gdn {
#define GEN_PASS_DEF_CONVERTGDNTOTILEPASS
#include "gdn/Conversion/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

namespace {
struct ConvertGDNToTile
    : gdn::impl::ConvertGDNToTilePassBase<ConvertGDNToTile> {
  using ConvertGDNToTilePassBase::ConvertGDNToTilePassBase;
  void runOnOperation() override;
  /// The operand type that the option names, null for `auto`.
  FailureOr<FloatType> parseOperandType();
  LogicalResult convert(Stage &stage, FloatType operandType,
                        SymbolTableCollection &symbols);
  LogicalResult setCluster(Stage &stage);
};
} // namespace

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// How a program sees an array: any strides, but contiguous in the last
/// dimension, so that views of a fused projection need no copy, unless the
/// function says that it may be no such view. Of segments that start on their
/// own some arrays may be none either. Nor need indices be contiguous: of 64
/// bits they are ones of 32 bits with a stride of 2.
static MemRefType arrayType(const Stage &stage, StringRef name, Type type,
                            ArrayNotes notes) {
  static constexpr StringLiteral kViews[] = {"before", "closes", "whole_begins",
                                             "sequence_state", "final_state"};
  static constexpr StringLiteral kNumbers[] = {
      "state_indices", "has_initial_state", "step_indices",  "num_accepted",
      "parents",       "step_starts",       "step_intervals"};
  // A state pass has states of segments, which are whole arrays.
  bool isView = notes.isStrided || llvm::is_contained(kNumbers, name) ||
                (stage["before"] && llvm::is_contained(kViews, name) &&
                 (name != "final_state" || isa<FusedStageOp>(stage.op)));
  return tile::getArrayType(type, /*isContiguous=*/!isView);
}

/// Creates the empty program of a stage, with its arrays.
static tile::ProgramOp createProgram(const Stage &stage, ModuleOp module,
                                     SymbolTable &symbols) {
  SmallVector<Type> inputs, outputs;
  SmallVector<StringRef> names;
  for (const NamedInput &input : stage.inputs) {
    Type type = input.tensor.getType();
    inputs.push_back(isa<RankedTensorType>(type)
                         ? arrayType(stage, input.name, type, input.notes)
                         : type);
    names.push_back(input.name);
  }
  for (const NamedOutput &output : stage.outputs) {
    outputs.push_back(arrayType(stage, output.name, output.type, output.notes));
    names.push_back(output.name);
  }
  return createProgram(stage.op, module, symbols, inputs, outputs, names,
                       tile::ProgramOp::kMinGridRank +
                           (stage.hasTurns || stage[kPartCount] ? 1 : 0));
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

FailureOr<FloatType> ConvertGDNToTile::parseOperandType() {
  Builder b(&getContext());
  if (operandType == "auto")
    return FloatType();
  for (FloatType type : {FloatType(b.getBF16Type()), FloatType(b.getF16Type()),
                         FloatType(b.getF32Type())}) {
    std::string name;
    llvm::raw_string_ostream(name) << type;
    if (operandType == name)
      return type;
  }
  return getOperation().emitError(
             "expected operand-type auto, bf16, f16 or f32, got '")
         << operandType.getValue() << "'";
}

/// V channels of a tile where their number is not given: the rows of a tensor
/// core's product. Token by token there is none: the tile is a part of the
/// state that few registers hold, so that many CTAs wait for memory at a time.
/// Of states [K, V] 32 channels are a line. Of [V, K], where a row of the tile
/// is contiguous, 16 rows of K = 128 are faster.
static int64_t chooseVTileChannels(const Stage &stage) {
  constexpr int64_t kProductRows = 64, kProductColumns = 16, kShortKey = 128;
  const StageFacts &facts = stage.facts;
  // Columns of its products, and serial: the fewer, the more CTAs share it.
  if (isa<SegmentScanStageOp>(stage.op))
    return kProductColumns;
  if (stage.rounds) // has products
    return kProductRows;
  if (facts.stateLayout == StateLayout::VK && facts.K <= kShortKey) {
    constexpr int64_t kLeast = 16, kEntries = 2048;
    return std::clamp(kEntries / facts.K, kLeast, kProductRows);
  }
  return 32;
}

/// Where gradients carry the state, the value heads of a group are work items
/// of a cluster, if there are such.
LogicalResult ConvertGDNToTile::setCluster(Stage &stage) {
  StageFacts &facts = stage.facts;
  bool carriesState = facts.stateInterval > 2 * facts.segmentLength;
  if (!clusterHeads || !stage.groupsHeads || !carriesState)
    return success();
  if (ShapedType::isDynamic(facts.H) || ShapedType::isDynamic(facts.Hq))
    return stage.op->emitOpError("expected static numbers of heads with a "
                                 "state_interval of ")
           << facts.stateInterval << ", got dynamic ones";
  facts.cluster = facts.H / facts.Hq;
  // What eight send each other does not fit into shared memory beside the rest.
  constexpr int64_t kMostHeads = 4;
  if (facts.cluster <= kMostHeads && llvm::isPowerOf2_64(facts.cluster))
    return success();
  return stage.op->emitOpError("expected 1, 2 or 4 value heads a query/key "
                               "head with a state_interval of ")
         << facts.stateInterval << ", got " << facts.cluster;
}

LogicalResult ConvertGDNToTile::convert(Stage &stage, FloatType operandType,
                                        SymbolTableCollection &symbols) {
  StageFacts &facts = stage.facts;
  if (failed(readNotes(stage)))
    return failure();
  if (stage.splitsV) {
    int64_t tiles =
        vTiles != 0
            ? vTiles
            : std::max<int64_t>(1, facts.V / chooseVTileChannels(stage));
    auto adjoint = dyn_cast<AdjointStageOp>(stage.op);
    if (adjoint && adjoint.getReportingTiles())
      tiles = *adjoint.getReportingTiles();
    if (facts.V % tiles != 0)
      return stage.op->emitOpError("expected V = ")
             << facts.V << " to be a multiple of v-tiles, got " << tiles;
    facts.vTileChannels = facts.V / tiles;
  }
  if (failed(setCluster(stage)))
    return failure();
  if (stage.sharesChunks && workItems > 0) {
    OpBuilder b(stage.op);
    stage.inputs.push_back({kPartCount, chooseParts(b, stage, workItems)});
    facts.parts = 1;
  }
  if (stage.sharesTokens) {
    OpBuilder b(stage.op);
    stage.inputs.push_back({kPartCount, countShortParts(b, stage)});
  }
  auto module =
      dyn_cast<ModuleOp>(SymbolTable::getNearestSymbolTable(stage.op));
  if (!module)
    return stage.op->emitOpError("expected a module as the nearest symbol "
                                 "table, to put the program in, got ")
           << SymbolTable::getNearestSymbolTable(stage.op)->getName();
  if (!stage.rounds)
    operandType = Float32Type::get(&getContext());
  else if (!operandType)
    operandType = cast<FloatType>(getElementTypeOrSelf(stage.rows().getType()));
  facts.twoProductChain = twoProductChain && stage.rounds;
  tile::ProgramOp program =
      createProgram(stage, module, symbols.getSymbolTable(module));
  OpBuilder parent = OpBuilder::atBlockBegin(&program.getBody().front());
  TileBuilder builder(stage.op->getLoc(), parent, operandType);
  Program body(builder, facts, program);
  stage.write(body);
  replaceByLaunch(stage, program);
  return success();
}

void ConvertGDNToTile::runOnOperation() {
  for (auto [name, value] : {std::pair("v-tiles", vTiles.getValue()),
                             std::pair("work-items", workItems.getValue())})
    if (value < 0) {
      getOperation().emitError("expected ")
          << name << " of at least 0, got " << value;
      return signalPassFailure();
    }
  FailureOr<FloatType> operandType = parseOperandType();
  if (failed(operandType))
    return signalPassFailure();
  SmallVector<Operation *> ops;
  getOperation()->walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops)
    if (auto function = dyn_cast<FunctionOpInterface>(op))
      if (failed(verifyNotes(function)))
        return signalPassFailure();
  SymbolTableCollection symbols;
  for (Operation *op : ops) {
    if (auto conversion = dyn_cast<ConvertOp>(op))
      replaceByLaunch(conversion, getOperation(),
                      symbols.getSymbolTable(getOperation()));
    else if (std::optional<Stage> stage = readStage(op))
      if (failed(convert(*stage, *operandType, symbols)))
        return signalPassFailure();
  }
}
