//===- GDNToTile.cpp - Write the program of every stage op ----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Conversion/Passes.h"

#include "Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/TypeSwitch.h"

#define DEBUG_TYPE "convert-gdn-to-tile"

namespace mlir::gdn {
#define GEN_PASS_DEF_CONVERTGDNTOTILEPASS
#include "gdn/Conversion/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

namespace {
/// An array that a program takes: its name there and the tensor outside.
struct NamedTensor {
  StringRef name;
  Value tensor;
};

/// A stage op in the one shape that all of them are lowered from.
struct Stage {
  StageFacts facts;
  /// Name of the program: the stage's, without the dialect.
  StringRef name;
  SmallVector<NamedTensor> inputs;
  /// Names of the results, in order.
  SmallVector<StringRef> outputs;
  /// Sequence boundaries, or null.
  Value cuSeqlens;
  void (*write)(Program &) = nullptr;

  void input(StringRef name, Value tensor) {
    if (tensor)
      inputs.push_back({name, tensor});
  }
};

struct ConvertGDNToTile
    : gdn::impl::ConvertGDNToTilePassBase<ConvertGDNToTile> {
  using ConvertGDNToTilePassBase::ConvertGDNToTilePassBase;
  void runOnOperation() override;
  LogicalResult convert(Operation *op, SymbolTable &symbols);
  FailureOr<FloatType> chooseOperandType(Operation *op, Type data);
};
} // namespace

static ArrayRef<int64_t> shape(Value value) {
  return cast<ShapedType>(value.getType()).getShape();
}

/// Gate variant by the rank of the gate (or of its cumulated sum).
static DecayKind decayKind(Value gate) {
  if (!gate)
    return DecayKind::None;
  return shape(gate).size() == 3 ? DecayKind::Scalar : DecayKind::Channel;
}

//===----------------------------------------------------------------------===//
// Reading stage ops
//===----------------------------------------------------------------------===//

/// The common operands of a delta rule stage.
static Stage readRule(DeltaRuleOpInterface op) {
  Stage stage;
  stage.facts.decay = decayKind(op.getGate());
  stage.facts.gateDomain = op.getGateDomain();
  if (FloatAttr bound = op.getLowerBoundAttr())
    stage.facts.lowerBound = bound.getValueAsDouble();
  stage.facts.l2norm = op.getQkL2norm();
  stage.facts.betaDomain = op.getBetaDomain();
  stage.facts.stateLayout = op.getStateLayout();
  stage.input("q", op.getQ());
  stage.input("k", op.getK());
  stage.input("v", op.getV());
  stage.input("beta", op.getBeta());
  stage.input("gate", op.getGate());
  stage.input("a_log", op.getALog());
  stage.input("dt_bias", op.getDtBias());
  stage.input("initial_state", op.getInitialState());
  stage.cuSeqlens = op.getCuSeqlens();
  return stage;
}

/// The forward stages: `o`, then the final state if it is asked for.
static Stage readForward(DeltaRuleOpInterface op, int64_t chunk,
                         void (*write)(Program &)) {
  Stage stage = readRule(op);
  stage.facts.C = chunk;
  stage.write = write;
  stage.outputs = {"o"};
  if (op->getNumResults() > 1)
    stage.outputs.push_back("final_state");
  return stage;
}

static Stage readStatePass(StatePassStageOp op) {
  Stage stage = readForward(op, op.getChunkSize(), writeFused);
  // Without `o` the same program reads no queries.
  stage.outputs = {"final_state"};
  llvm::erase_if(stage.inputs,
                 [](const NamedTensor &input) { return input.name == "q"; });
  return stage;
}

static Stage readPrepare(PrepareStageOp op) {
  Stage stage;
  stage.facts.C = op.getChunkSize();
  stage.facts.decay = decayKind(op.getGate());
  stage.facts.gateDomain = op.getGateDomain();
  if (FloatAttr bound = op.getLowerBoundAttr())
    stage.facts.lowerBound = bound.getValueAsDouble();
  stage.facts.l2norm = op.getQkL2norm();
  stage.facts.betaDomain = op.getBetaDomain();
  stage.input("k", op.getK());
  stage.input("beta", op.getBeta());
  stage.input("gate", op.getGate());
  stage.input("a_log", op.getALog());
  stage.input("dt_bias", op.getDtBias());
  stage.cuSeqlens = op.getCuSeqlens();
  stage.outputs = {"bm"};
  if (op.getGate())
    stage.outputs.push_back("decay");
  stage.write = writePrepare;
  return stage;
}

static Stage readRun(RunStageOp op) {
  Stage stage;
  stage.facts.C = op.getChunkSize();
  stage.facts.decay = decayKind(op.getDecay());
  stage.facts.l2norm = op.getQkL2norm();
  stage.facts.betaDomain = op.getBetaDomain();
  stage.facts.stateLayout = op.getStateLayout();
  stage.input("q", op.getQ());
  stage.input("k", op.getK());
  stage.input("v", op.getV());
  stage.input("beta", op.getBeta());
  stage.input("bm", op.getBm());
  stage.input("decay", op.getDecay());
  stage.input("initial_state", op.getInitialState());
  stage.cuSeqlens = op.getCuSeqlens();
  stage.outputs = {"o"};
  if (op.getNumResults() > 1)
    stage.outputs.push_back("final_state");
  stage.write = writeRun;
  return stage;
}

static Stage readLinearAttention(LinearAttentionStageOp op) {
  Stage stage;
  stage.facts.C = op.getChunkSize();
  stage.facts.l2norm = op.getQkL2norm();
  stage.facts.stateLayout = op.getStateLayout();
  stage.input("q", op.getQ());
  stage.input("k", op.getK());
  stage.input("v", op.getV());
  stage.input("initial_state", op.getInitialState());
  stage.cuSeqlens = op.getCuSeqlens();
  stage.outputs = {"o"};
  if (op.getNumResults() > 1)
    stage.outputs.push_back("final_state");
  stage.write = writeLinearAttention;
  return stage;
}

static Stage readBackward(BackwardStageOp op) {
  Stage stage = readRule(op);
  stage.facts.C = op.getChunkSize();
  stage.input("d_o", op.getDO());
  stage.input("d_final_state", op.getDFinalState());
  stage.outputs = {"dq", "dk", "dv", "dbeta"};
  if (op.getGate())
    stage.outputs.push_back("dgate");
  if (op.getInitialState())
    stage.outputs.push_back("d_initial_state");
  stage.write = writeBackward;
  return stage;
}

/// Reads `op` if it is a stage.
static std::optional<Stage> readStage(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<Stage>>(op)
      .Case([](FusedStageOp op) {
        return readForward(op, op.getChunkSize(), writeFused);
      })
      .Case([](RecurrentStageOp op) {
        return readForward(op, /*chunk=*/1, writeRecurrent);
      })
      .Case([](StatePassStageOp op) { return readStatePass(op); })
      .Case([](PrepareStageOp op) { return readPrepare(op); })
      .Case([](RunStageOp op) { return readRun(op); })
      .Case([](LinearAttentionStageOp op) { return readLinearAttention(op); })
      .Case([](BackwardStageOp op) { return readBackward(op); })
      .Default([](Operation *) { return std::nullopt; });
}

/// The input of that name, null if there is none.
static Value find(const Stage &stage, StringRef name) {
  for (const NamedTensor &input : stage.inputs)
    if (input.name == name)
      return input.tensor;
  return {};
}

/// Head counts, channels and scale from the shapes of the operands.
static LogicalResult completeFacts(Operation *op, Stage &stage,
                                   int64_t vParts) {
  StageFacts &facts = stage.facts;
  ArrayRef<int64_t> k = shape(find(stage, "k"));
  facts.Hq = k[2];
  facts.K = k[3];
  facts.scale = 1.0 / std::sqrt(static_cast<double>(facts.K));
  if (auto scale = op->getAttrOfType<FloatAttr>("scale"))
    facts.scale = scale.getValueAsDouble();
  Value v = find(stage, "v");
  facts.H = v ? shape(v)[2] : shape(find(stage, "beta"))[2];
  facts.V = v ? shape(v)[3] : 0;
  bool splits = v && stage.write != writeBackward;
  facts.partV = splits ? facts.V / vParts : facts.V;
  if (ShapedType::isDynamic(facts.Hq) || ShapedType::isDynamic(facts.K) ||
      ShapedType::isDynamic(facts.H) || ShapedType::isDynamic(facts.V))
    return op->emitOpError("expected static head counts and channels, got ")
           << find(stage, "k").getType();
  if (splits && facts.V % vParts != 0)
    return op->emitOpError("expected V = ")
           << facts.V << " to be a multiple of v-parts, got " << vParts;
  return success();
}

//===----------------------------------------------------------------------===//
// Programs and launches
//===----------------------------------------------------------------------===//

/// How a program sees an array: any strides, but contiguous in the last
/// dimension, so that views of a fused projection need no copy.
static MemRefType arrayType(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> strides(tensor.getRank(), ShapedType::kDynamic);
  if (!strides.empty())
    strides.back() = 1;
  auto layout =
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides);
  return MemRefType::get(tensor.getShape(), tensor.getElementType(), layout);
}

/// Creates the empty program of a stage before the function that holds it.
static tile::ProgramOp createProgram(Operation *op, const Stage &stage,
                                     SymbolTable &symbols) {
  Operation *top = op;
  while (!isa<ModuleOp>(top->getParentOp()))
    top = top->getParentOp();
  SmallVector<Type> inputs, outputs;
  SmallVector<StringRef> names;
  for (const NamedTensor &input : stage.inputs) {
    inputs.push_back(arrayType(input.tensor.getType()));
    names.push_back(input.name);
  }
  for (auto [name, type] : llvm::zip(stage.outputs, op->getResultTypes())) {
    outputs.push_back(arrayType(type));
    names.push_back(name);
  }
  std::string name = stage.name.str();
  if (auto symbol = dyn_cast<SymbolOpInterface>(top))
    name = symbol.getName().str() + "_" + name;
  OpBuilder builder(top);
  auto program = tile::ProgramOp::create(builder, op->getLoc(), name, inputs,
                                         outputs, names);
  // Symbol names stay unique in the module.
  symbols.insert(program, Block::iterator(top));
  return program;
}

/// One size of a tensor that a result is made for.
static OpFoldResult sizeOf(OpBuilder &b, Location loc, Value tensor,
                           int64_t dim) {
  int64_t size = shape(tensor)[dim];
  if (!ShapedType::isDynamic(size))
    return b.getIndexAttr(size);
  return tensor::DimOp::create(b, loc, tensor, dim).getResult();
}

/// N: one sequence a batch, or one less than the boundaries.
static OpFoldResult numSequences(OpBuilder &b, Location loc,
                                 const Stage &stage) {
  if (!stage.cuSeqlens)
    return sizeOf(b, loc, find(stage, "k"), 0);
  OpFoldResult boundaries = sizeOf(b, loc, stage.cuSeqlens, 0);
  if (auto size = dyn_cast<Attribute>(boundaries))
    return b.getIndexAttr(cast<IntegerAttr>(size).getInt() - 1);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  return arith::SubIOp::create(b, loc, cast<Value>(boundaries), one)
      .getResult();
}

/// The empty tensor of one result: states are per sequence, the rest per batch
/// and token.
static Value createOutput(OpBuilder &b, Location loc, const Stage &stage,
                          StringRef name, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<Value> dynamic;
  bool isState = name.ends_with("state");
  Value k = find(stage, "k");
  for (auto [dim, size] : llvm::enumerate(tensor.getShape())) {
    if (!ShapedType::isDynamic(size))
      continue;
    OpFoldResult value =
        isState ? numSequences(b, loc, stage) : sizeOf(b, loc, k, dim);
    dynamic.push_back(getValueOrCreateConstantIndexOp(b, loc, value));
  }
  return tensor::EmptyOp::create(b, loc, tensor, dynamic);
}

/// Replaces the stage by a launch of its program.
static void replaceByLaunch(Operation *op, const Stage &stage,
                            tile::ProgramOp program) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  auto index = [&](OpFoldResult value) {
    return getValueOrCreateConstantIndexOp(b, loc, value);
  };
  int64_t parts = stage.facts.partV ? stage.facts.V / stage.facts.partV : 1;
  SmallVector<Value> grid = {index(numSequences(b, loc, stage)),
                             index(b.getIndexAttr(stage.facts.H)),
                             index(b.getIndexAttr(parts))};
  Value tokens = index(sizeOf(b, loc, find(stage, "k"), 1));
  SmallVector<Value> inputs, outputs;
  for (const NamedTensor &input : stage.inputs)
    inputs.push_back(input.tensor);
  for (auto [name, type] : llvm::zip(stage.outputs, op->getResultTypes()))
    outputs.push_back(createOutput(b, loc, stage, name, type));
  auto launch = tile::LaunchOp::create(
      b, loc, op->getResultTypes(), SymbolRefAttr::get(program), grid, tokens,
      stage.cuSeqlens, inputs, outputs);
  op->replaceAllUsesWith(launch.getResults());
  op->erase();
}

FailureOr<FloatType> ConvertGDNToTile::chooseOperandType(Operation *op,
                                                         Type data) {
  Builder b(op->getContext());
  if (isa<RecurrentStageOp, BackwardStageOp>(op))
    return FloatType(b.getF32Type()); // spec 1, 5: these programs round nothing
  if (operandType == "auto")
    return cast<FloatType>(data);
  if (operandType == "bf16")
    return FloatType(b.getBF16Type());
  if (operandType == "f16")
    return FloatType(b.getF16Type());
  if (operandType == "f32")
    return FloatType(b.getF32Type());
  return op->emitOpError("expected operand-type auto, bf16, f16 or f32, got ")
         << operandType.getValue();
}

LogicalResult ConvertGDNToTile::convert(Operation *op, SymbolTable &symbols) {
  std::optional<Stage> stage = readStage(op);
  if (!stage)
    return success();
  stage->name = op->getName().stripDialect().split('.').second;
  if (failed(completeFacts(op, *stage, vParts)))
    return failure();
  FailureOr<FloatType> type =
      chooseOperandType(op, getElementTypeOrSelf(find(*stage, "k").getType()));
  if (failed(type))
    return failure();
  tile::ProgramOp program = createProgram(op, *stage, symbols);
  OpBuilder parent = OpBuilder::atBlockBegin(&program.getBody().front());
  TileBuilder builder(op->getLoc(), parent, *type);
  Program body(builder, stage->facts, program);
  stage->write(body);
  replaceByLaunch(op, *stage, program);
  return success();
}

void ConvertGDNToTile::runOnOperation() {
  SymbolTable symbols(getOperation());
  SmallVector<Operation *> stages;
  getOperation()->walk([&](Operation *op) { stages.push_back(op); });
  if (vParts < 1) {
    getOperation().emitError("expected v-parts of at least 1, got ")
        << vParts.getValue();
    return signalPassFailure();
  }
  for (Operation *op : stages)
    if (failed(convert(op, symbols)))
      return signalPassFailure();
}
