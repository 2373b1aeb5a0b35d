//===- OutlineLinalg.cpp - Work on whole tensors as programs --------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The program of an op takes a chunk of tokens after the other, as a vector or
// as a tile with a row a token. The op's scalar ops become the same ops on
// tiles, in one role. Vectors live in other threads than rows do, so where both
// meet a second role loads the vectors and stores the sums of rows, through
// channels.
//
//===----------------------------------------------------------------------===//

#include "WholeTensorOp.h"

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/Warp/IR/Warp.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

#define DEBUG_TYPE "gdn-warp-outline-linalg"

namespace mlir::gdn {
#define GEN_PASS_DEF_OUTLINELINALGPASS
#include "gdn/Conversion/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;
using InputKind = WholeTensorOp::InputKind;
using Reduction = WholeTensorOp::Reduction;

/// Tokens of a chunk: rows of the tile that a warpgroup holds.
static constexpr int64_t kTokens = 64;
/// Work items that share the tokens of a head: few heads fill a machine.
static constexpr int64_t kParts = 16;
/// Steps of the program, which name the role that runs an op.
static constexpr StringLiteral kVectorStep = "gates", kRowStep = "state",
                               kStoreStep = "store";
/// Warps of a warpgroup, registers of a role's threads. Roles with tiles have
/// the most that a thread may have.
static constexpr int64_t kWarps = 4, kVectorRegisters = 96, kRowRegisters = 240;

namespace {
/// Writes the program of one op.
class ProgramWriter {
public:
  ProgramWriter(WholeTensorOp &whole, tile::ProgramOp program)
      : whole(whole), program(program),
        b(whole.op.getLoc(),
          OpBuilder::atBlockBegin(&program.getBody().front())) {}

  void write();

private:
  void writeChunk(Value token);
  Value load(Value array, ValueRange offsets, ArrayRef<int64_t> axes,
             ArrayRef<int64_t> shape, bool ends, StringRef step);
  Value loadInput(unsigned index, Value token, int64_t member);
  Value compute(ArrayRef<Value> inputs);
  Value makeTile(Value scalar, IRMapping &tiles);
  template <typename Op, typename... Args> Value create(Args &&...args) {
    auto made = Op::create(b, std::forward<Args>(args)...);
    note(made, kRowStep);
    return made->getResult(0);
  }
  void note(Operation *made, StringRef step) {
    made->setAttr(tile::TileDialect::getStepAttrName(), b.getStringAttr(step));
  }
  SmallVector<int64_t> tileShape() const {
    if (whole.columns)
      return {kTokens, whole.columns};
    return {kTokens};
  }

  WholeTensorOp &whole;
  tile::ProgramOp program;
  ImplicitLocOpBuilder b;
  Value zero;
  /// Numbers of the work item's head, by input.
  llvm::DenseMap<unsigned, Value> perHead;
};
} // namespace

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

Value ProgramWriter::load(Value array, ValueRange offsets,
                          ArrayRef<int64_t> axes, ArrayRef<int64_t> shape,
                          bool ends, StringRef step) {
  Type element = cast<MemRefType>(array.getType()).getElementType();
  auto loaded = tile::LoadOp::create(
      b, RankedTensorType::get(shape, element), array, offsets,
      b.getDenseI64ArrayAttr(axes), ends ? program.getEnd() : Value(),
      ends ? b.getI64IntegerAttr(1) : IntegerAttr());
  note(loaded, step);
  return loaded;
}

/// A chunk of an input; `member` is a head's number in its group.
Value ProgramWriter::loadInput(unsigned index, Value token, int64_t member) {
  Value array = program.getInputs()[index];
  Value head = program.getHead();
  bool mixes = whole.mixesLayouts();
  switch (whole.inputs[index].kind) {
  case InputKind::PerHead:
    return create<tensor::SplatOp>(perHead[index], tileShape());
  case InputKind::PerToken: {
    Value vector = load(array, {program.getBatch(), token, head}, {1},
                        {kTokens}, /*ends=*/true, kVectorStep);
    Value empty = create<tensor::EmptyOp>(
        tileShape(), getElementTypeOrSelf(vector.getType()));
    return create<linalg::BroadcastOp>(vector, empty, ArrayRef<int64_t>{1});
  }
  case InputKind::Grouped: {
    Value first = arith::MulIOp::create(
        b, head, arith::ConstantIndexOp::create(b, whole.group));
    head = arith::AddIOp::create(b, first,
                                 arith::ConstantIndexOp::create(b, member));
    [[fallthrough]];
  }
  case InputKind::Whole:
    if (whole.columns)
      return load(array, {program.getBatch(), token, head, zero}, {1, 3},
                  tileShape(), /*ends=*/true, kRowStep);
    return load(array, {program.getBatch(), token, head}, {1}, {kTokens},
                /*ends=*/true, mixes ? kVectorStep : kRowStep);
  }
  llvm_unreachable("covered switch");
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

/// The tile of a scalar of the op's body.
Value ProgramWriter::makeTile(Value scalar, IRMapping &tiles) {
  if (Value known = tiles.lookupOrNull(scalar))
    return known;
  auto type = RankedTensorType::get(tileShape(), scalar.getType());
  Attribute constant;
  Value made;
  if (matchPattern(scalar, m_Constant(&constant))) {
    made = create<arith::ConstantOp>(
        DenseElementsAttr::get(type, ArrayRef<Attribute>(constant)));
  } else {
    Operation *op = scalar.getDefiningOp();
    OperationState state(b.getLoc(), op->getName());
    for (Value operand : op->getOperands())
      state.addOperands(makeTile(operand, tiles));
    state.addTypes(type);
    state.addAttributes(op->getAttrs());
    Operation *copy = b.create(state);
    note(copy, kRowStep);
    made = copy->getResult(0);
  }
  tiles.map(scalar, made);
  return made;
}

Value ProgramWriter::compute(ArrayRef<Value> inputs) {
  IRMapping tiles;
  for (auto [argument, tile] :
       llvm::zip(whole.op.getBody()->getArguments(), inputs))
    tiles.map(argument, tile);
  return makeTile(whole.element, tiles);
}

void ProgramWriter::writeChunk(Value token) {
  Value result;
  for (int64_t member = 0; member < whole.group; ++member) {
    SmallVector<Value> inputs;
    for (unsigned i = 0; i < whole.inputs.size(); ++i)
      inputs.push_back(loadInput(i, token, member));
    Value element = compute(inputs);
    result = result ? create<arith::AddFOp>(result, element) : element;
  }
  bool sums = whole.reduction == Reduction::Columns;
  if (sums) {
    auto type = RankedTensorType::get({kTokens}, getElementTypeOrSelf(result));
    Value none = create<arith::ConstantOp>(
        DenseElementsAttr::get(type, b.getZeroAttr(type.getElementType())));
    auto sum = linalg::ReduceOp::create(
        b, result, none, ArrayRef<int64_t>{1},
        [](OpBuilder &inner, Location loc, ValueRange args) {
          Value total = arith::AddFOp::create(inner, loc, args[0], args[1]);
          linalg::YieldOp::create(inner, loc, total);
        });
    note(sum, kRowStep);
    result = sum->getResult(0);
  }
  SmallVector<Value> offsets = {program.getBatch(), token, program.getHead()};
  SmallVector<int64_t> axes = {1};
  if (whole.columns && !sums) {
    offsets.push_back(zero);
    axes.push_back(3);
  }
  auto store = tile::StoreOp::create(b, result, program.getOutputs()[0],
                                     offsets, b.getDenseI64ArrayAttr(axes),
                                     program.getEnd(), b.getI64IntegerAttr(1));
  note(store, sums ? kStoreStep : kRowStep);
}

void ProgramWriter::write() {
  zero = arith::ConstantIndexOp::create(b, 0);
  for (auto [index, input] : llvm::enumerate(whole.inputs)) {
    if (input.kind != InputKind::PerHead)
      continue;
    Value one = load(program.getInputs()[index], program.getHead(), {0}, {1},
                     /*ends=*/false, kRowStep);
    perHead[index] = create<tensor::ExtractOp>(one, zero);
  }
  // The parts of a head take its chunks in turn.
  Value chunk = arith::ConstantIndexOp::create(b, kTokens);
  Value first = arith::MulIOp::create(b, program.getVTile(), chunk);
  Value lower = arith::AddIOp::create(b, program.getBegin(), first);
  Value step = arith::ConstantIndexOp::create(b, kTokens * kParts);
  auto loop = scf::ForOp::create(b, lower, program.getEnd(), step);
  b.setInsertionPointToStart(loop.getBody());
  writeChunk(loop.getInductionVar());
}

//===----------------------------------------------------------------------===//
// Programs and launches
//===----------------------------------------------------------------------===//

/// One role, or a second one for vectors.
static warp::ScheduleAttr makeSchedule(WholeTensorOp &whole) {
  Builder b(whole.op.getContext());
  auto role = [&](StringRef name, int64_t warps, int64_t registers,
                  ArrayRef<StringRef> steps) {
    return warp::RoleSpecAttr::get(
        b.getContext(), name, warps, registers, b.getStrArrayAttr(steps),
        /*delayedSteps=*/{}, /*delay=*/0, /*prefetchDistance=*/0,
        /*roundRobin=*/false, /*warpgroupPerVTile=*/false,
        /*loopChunks=*/false, /*alternateCtas=*/false,
        /*interleaveChunks=*/false, /*lanesPerRow=*/0);
  };
  auto channel = [&](StringRef name, StringRef from, StringRef to) {
    return warp::ChannelSpecAttr::get(b.getContext(), name, /*depth=*/2,
                                      b.getStrArrayAttr(from),
                                      b.getStrArrayAttr(to),
                                      /*slotPerChunk=*/false);
  };
  SmallVector<warp::RoleSpecAttr> roles;
  SmallVector<warp::ChannelSpecAttr> channels;
  if (whole.mixesLayouts()) {
    // One warp: each that fills a slot would write all of a vector.
    roles.push_back(
        role("vectors", 1, kVectorRegisters, {kVectorStep, kStoreStep}));
    roles.push_back(role("rest", kWarps - 1, kVectorRegisters, {}));
    channels = {channel("in", kVectorStep, "rows"),
                channel("out", kRowStep, "vectors")};
  }
  roles.push_back(role("rows", kWarps, kRowRegisters, {kRowStep}));
  return warp::ScheduleAttr::get(b.getContext(), /*chunksPerIteration=*/2,
                                 /*vTiles=*/1, /*cluster=*/1,
                                 /*persistent=*/false,
                                 /*cloneLikelyPath=*/false, /*minCtas=*/1,
                                 /*inOrder=*/false, roles, channels);
}

/// An array of any strides, but contiguous in the last dimension.
static MemRefType arrayType(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> strides(tensor.getRank(), ShapedType::kDynamic);
  strides.back() = 1;
  auto layout =
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides);
  return MemRefType::get(tensor.getShape(), tensor.getElementType(), layout);
}

static void replaceByLaunch(WholeTensorOp &whole, tile::ProgramOp program) {
  linalg::GenericOp op = whole.op;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto size = [&](int64_t dim) {
    return getValueOrCreateConstantIndexOp(
        b, b.getLoc(), tensor::getMixedSize(b, b.getLoc(), whole.out, dim));
  };
  Value parts = arith::ConstantIndexOp::create(b, kParts);
  SmallVector<Value> inputs;
  for (const WholeTensorOp::Input &input : whole.inputs)
    inputs.push_back(input.array);
  auto launch = tile::LaunchOp::create(
      b, op->getResultTypes(), SymbolRefAttr::get(program),
      ValueRange{size(0), size(2), parts}, size(1), /*cuSeqlens=*/Value(),
      inputs, ValueRange{whole.out});
  op->replaceAllUsesWith(launch.getResults());
  op->erase();
}

void gdn::outline(WholeTensorOp &whole, SymbolTable &symbols) {
  auto function = whole.op->getParentOfType<func::FuncOp>();
  OpBuilder b(function);
  SmallVector<Type> inputs;
  SmallVector<std::string> texts;
  for (const WholeTensorOp::Input &input : whole.inputs) {
    inputs.push_back(arrayType(input.array.getType()));
    texts.push_back("x" + std::to_string(texts.size()));
  }
  SmallVector<StringRef> names(texts.begin(), texts.end());
  names.push_back("y");
  auto program = tile::ProgramOp::create(
      b, whole.op.getLoc(), function.getSymName().str() + "_map", inputs,
      arrayType(whole.out.getType()), names);
  symbols.insert(program);
  program->setAttr(warp::ScheduleAttr::kName, makeSchedule(whole));
  ProgramWriter(whole, program).write();
  replaceByLaunch(whole, program);
}

/// Writes a fill that somebody reads as elementwise work without inputs. A sum
/// that begins at its value does not: the sum's program does.
static void writeFill(linalg::FillOp fill) {
  auto beginsSum = [&](OpOperand &use) {
    auto sum = dyn_cast<linalg::GenericOp>(use.getOwner());
    return sum && sum.isDpsInit(&use);
  };
  auto type = dyn_cast<RankedTensorType>(fill.output().getType());
  if (!type || llvm::all_of(fill->getUses(), beginsSum))
    return;
  OpBuilder b(fill);
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  auto made = linalg::GenericOp::create(
      b, fill.getLoc(), type, ValueRange{}, fill.output(),
      b.getMultiDimIdentityMap(type.getRank()), loops,
      [&](OpBuilder &inner, Location loc, ValueRange) {
        linalg::YieldOp::create(inner, loc, fill.value());
      });
  fill.getResult(0).replaceUsesWithIf(
      made.getResult(0), [&](OpOperand &use) { return !beginsSum(use); });
}

namespace {
struct OutlineLinalg : gdn::impl::OutlineLinalgPassBase<OutlineLinalg> {
  void runOnOperation() override {
    SmallVector<linalg::GenericOp> ops;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      for (linalg::FillOp fill :
           llvm::to_vector(function.getOps<linalg::FillOp>()))
        writeFill(fill);
      function.walk([&](linalg::GenericOp op) {
        if (op.hasPureTensorSemantics())
          ops.push_back(op);
      });
    }
    if (ops.empty())
      return;
    SymbolTable symbols(getOperation());
    for (linalg::GenericOp op : ops) {
      FailureOr<WholeTensorOp> whole = readWholeTensorOp(op);
      if (failed(whole))
        return signalPassFailure();
      outline(*whole, symbols);
    }
  }
};
} // namespace
