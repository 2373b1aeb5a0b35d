//===- OutlineLinalg.cpp - Work on whole tensors as programs --------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops that share what they read or make become one program and a launch of it,
// and sums over tokens a second one.
//
//===----------------------------------------------------------------------===//

#include "WholeTensorProgram.h"

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/Warp/IR/Arch.h"
#include "gdn/Dialect/Warp/IR/Warp.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#define DEBUG_TYPE "gdn-warp-outline-linalg"

namespace mlir::gdn {
#define GEN_PASS_DEF_OUTLINELINALGPASS
#include "gdn/Conversion/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;
using InputKind = WholeTensorOp::InputKind;
using Reduction = WholeTensorOp::Reduction;

/// Warps of a warpgroup, the most registers of a role's threads.
static constexpr int64_t kWarps = 4, kMostRegisters = 240;

//===----------------------------------------------------------------------===//
// Programs and launches
//===----------------------------------------------------------------------===//

/// One role, and idle warps beside one of vectors.
static warp::ScheduleAttr makeSchedule(const WholeTensorGroup &group) {
  Builder b(group.ops.front().result.getContext());
  // Lanes have up to 16 bytes of a row each.
  int64_t lanes = group.columns() ? WholeTensorGroup::kLanesPerRow : 0;
  int64_t registers =
      warp::getArch(group.ops.front().op)
          .launchRegisters(kWarps * warp::format::kWarpThreads, group.ctas());
  auto role = [&](StringRef name, int64_t warps, ArrayRef<StringRef> steps) {
    return warp::RoleSpecAttr::get(
        b.getContext(), name, warps, std::min(registers, kMostRegisters),
        b.getStrArrayAttr(steps),
        /*delayedSteps=*/{}, /*delay=*/0, /*prefetchDistance=*/0,
        /*roundRobin=*/false, /*warpsPerTurn=*/1, /*warpgroupPerVTile=*/false,
        /*loopChunks=*/false, /*alternateCtas=*/false,
        /*interleaveChunks=*/false, /*shareCode=*/false,
        /*lateAddresses=*/false, /*loopPieces=*/false,
        /*handOnEarly=*/false, lanes);
  };
  // Each warp of a role would have all of a vector.
  int64_t warps = group.columns() ? kWarps : 1;
  SmallVector<warp::RoleSpecAttr> roles = {role("rows", warps, {kRowStep})};
  if (warps < kWarps)
    roles.push_back(role("rest", kWarps - warps, {}));
  return warp::ScheduleAttr::get(b.getContext(), /*chunksPerIteration=*/1,
                                 /*vTiles=*/1, /*cluster=*/1,
                                 /*persistent=*/false, group.ctas(),
                                 /*inOrder=*/false, roles, /*channels=*/{});
}

/// Sizes B, T and H of the loops of a group.
static SmallVector<OpFoldResult> readSizes(ImplicitLocOpBuilder &b,
                                           const WholeTensorGroup &group) {
  for (const WholeTensorOp &op : group.ops)
    if (op.reduction != Reduction::Tokens) {
      tensor::EmptyOp out = op.out;
      return out.getMixedSizes();
    }
  for (const WholeTensorOp::Input &input : group.ops.front().inputs)
    if (input.kind == InputKind::Whole)
      return tensor::getMixedSizes(b, b.getLoc(), input.array);
  llvm_unreachable("a sum has an input with all tokens");
}

/// Arrays that the program reads, each once.
static SmallVector<Value> collectArrays(const WholeTensorGroup &group) {
  llvm::SetVector<Value> arrays;
  for (const WholeTensorOp &op : group.ops)
    for (const WholeTensorOp::Input &input : op.inputs)
      if (!group.makes(input.array))
        arrays.insert(input.array);
  return arrays.takeVector();
}

/// An empty program named `name` behind the others of a function.
static tile::ProgramOp createProgram(func::FuncOp function, Location loc,
                                     StringRef suffix, ValueRange inputs,
                                     ValueRange outputs, int64_t gridRank,
                                     warp::ScheduleAttr schedule,
                                     SymbolTable &symbols) {
  OpBuilder b(function);
  SmallVector<Type> inputTypes, outputTypes;
  SmallVector<std::string> texts;
  for (Value input : inputs) {
    bool isArray = isa<ShapedType>(input.getType());
    inputTypes.push_back(isArray ? Type(tile::getArrayType(input.getType()))
                                 : input.getType());
    texts.push_back("x" + std::to_string(texts.size()));
  }
  for (Value output : outputs) {
    unsigned number = outputTypes.size();
    outputTypes.push_back(tile::getArrayType(output.getType()));
    texts.push_back("y" + (number ? std::to_string(number) : std::string()));
  }
  SmallVector<StringRef> names(texts.begin(), texts.end());
  auto program =
      tile::ProgramOp::create(b, loc, (function.getSymName() + suffix).str(),
                              inputTypes, outputTypes, names, gridRank);
  symbols.insert(program);
  program->setAttr(warp::ScheduleAttr::kName, schedule);
  return program;
}

/// Replaces sums over tokens by those of what the work items have summed,
/// `parts`.
static void launchTotals(ImplicitLocOpBuilder &b, const WholeTensorGroup &group,
                         ArrayRef<Value> parts, OpFoldResult heads,
                         SymbolTable &symbols) {
  SmallVector<Value> results, outs;
  for (const WholeTensorOp &op : group.ops)
    if (op.reduction == Reduction::Tokens) {
      tensor::EmptyOp out = op.out;
      results.push_back(op.result);
      outs.push_back(tensor::EmptyOp::create(b, out.getMixedSizes(),
                                             out.getType().getElementType()));
    }
  auto function = group.ops.front().op->getParentOfType<func::FuncOp>();
  tile::ProgramOp program = createProgram(function, b.getLoc(), "_sum", parts,
                                          outs, tile::ProgramOp::kMinGridRank,
                                          makeSchedule(group), symbols);
  writeTotals(group, parts, program);
  Value one = arith::ConstantIndexOp::create(b, 1);
  Value count = getValueOrCreateConstantIndexOp(
      b, b.getLoc(), tensor::getMixedSize(b, b.getLoc(), parts.front(), 1));
  auto launch = tile::LaunchOp::create(
      b, ValueRange(outs).getTypes(), SymbolRefAttr::get(program),
      ValueRange{one, getValueOrCreateConstantIndexOp(b, b.getLoc(), heads),
                 one},
      count, /*cuSeqlens=*/Value(), parts, outs);
  for (auto [result, made] : llvm::zip(results, launch.getResults()))
    result.replaceAllUsesWith(made);
}

/// Where a work item stores its sum: [1, work items of a head, H], or with
/// columns [1, work items of a head, H, K].
static Value createParts(ImplicitLocOpBuilder &b, Value count,
                         OpFoldResult heads, int64_t columns) {
  SmallVector<OpFoldResult> sizes = {b.getIndexAttr(1), count, heads};
  if (columns)
    sizes.push_back(b.getIndexAttr(columns));
  return tensor::EmptyOp::create(b, sizes, b.getF32Type());
}

namespace {
/// How the work items of a batch row and head share its tokens.
struct TokenParts {
  /// The most chunks that one has, and how many there are.
  Value chunks, count;
};
} // namespace

/// A few chunks each, or fewer if those are too few for a device. With sums
/// over tokens as many as it computes at a time, since each has a sum of its
/// own; if that are few of each head, so that rounding leaves much of the
/// device idle, as many as it computes one after the other.
static TokenParts chooseTokenParts(ImplicitLocOpBuilder &b,
                                   const WholeTensorGroup &group, Value rows,
                                   Value heads, Value tokens) {
  constexpr int64_t kMostChunks = 4, kFew = 3, kRounds = 4;
  auto get = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  auto mul = [&](Value x, Value y) -> Value {
    return arith::MulIOp::create(b, x, y);
  };
  auto least = [&](Value x, Value y) -> Value {
    return arith::MinUIOp::create(b, x, y);
  };
  auto atLeastOne = [&](Value x) -> Value {
    return arith::MaxUIOp::create(b, x, get(1));
  };
  auto divide = [&](Value x, Value y) -> Value {
    return arith::DivUIOp::create(b, x, y);
  };
  auto divideUp = [&](Value x, Value y) -> Value {
    return arith::CeilDivUIOp::create(b, x, y);
  };
  Value each = atLeastOne(mul(rows, heads));
  Value chunks = atLeastOne(divideUp(tokens, get(group.tokens())));
  Value places =
      get(warp::getArch(group.ops.front().op).multiprocessors * group.ctas());
  Value most;
  if (group.sumsTokens()) {
    // 1 if these are few, else 0.
    Value areFew =
        least(divide(get(kFew), atLeastOne(divide(places, each))), get(1));
    Value rounds =
        arith::AddIOp::create(b, mul(areFew, get(kRounds - 1)), get(1));
    Value count = least(divide(mul(rounds, places), each), chunks);
    most = divideUp(chunks, atLeastOne(count));
  } else {
    most = least(divideUp(mul(chunks, each), places), get(kMostChunks));
  }
  return {most, divideUp(chunks, most)};
}

void gdn::outline(const WholeTensorGroup &group, SymbolTable &symbols) {
  linalg::GenericOp last = group.ops.back().op;
  ImplicitLocOpBuilder b(last.getLoc(), last);
  SmallVector<OpFoldResult> sizes = readSizes(b, group);
  auto size = [&](int64_t dim) {
    return getValueOrCreateConstantIndexOp(b, b.getLoc(), sizes[dim]);
  };
  Value heads = arith::CeilDivUIOp::create(
      b, size(2), arith::ConstantIndexOp::create(b, group.heads()));
  TokenParts parts = chooseTokenParts(b, group, size(0), heads, size(1));
  SmallVector<Value> inputs = collectArrays(group), outs;
  SmallVector<const WholeTensorOp *> stored;
  for (const WholeTensorOp &op : group.ops) {
    bool isSum = op.reduction == Reduction::Tokens;
    if (!isSum && !group.isRead(op))
      continue;
    tensor::EmptyOp out = op.out;
    outs.push_back(
        isSum ? createParts(b, arith::MulIOp::create(b, size(0), parts.count),
                            sizes[2], group.columns())
              : out.getResult());
    stored.push_back(&op);
  }
  auto function = last->getParentOfType<func::FuncOp>();
  llvm::append_values(inputs, parts.chunks, parts.count);
  tile::ProgramOp program = createProgram(
      function, b.getLoc(), "_map", inputs, outs,
      tile::ProgramOp::kMinGridRank + 1, makeSchedule(group), symbols);
  writeProgram(group, inputs, program);
  auto launch = tile::LaunchOp::create(
      b, ValueRange(outs).getTypes(), SymbolRefAttr::get(program),
      ValueRange{size(0), parts.count, arith::ConstantIndexOp::create(b, 1),
                 heads},
      size(1), /*cuSeqlens=*/Value(), inputs, outs);
  SmallVector<Value> partSums;
  for (auto [op, made] : llvm::zip(stored, launch.getResults())) {
    if (op->reduction == Reduction::Tokens)
      partSums.push_back(made);
    else
      Value(op->result).replaceAllUsesWith(made);
  }
  if (!partSums.empty())
    launchTotals(b, group, partSums, sizes[2], symbols);
  for (const WholeTensorOp &op : llvm::reverse(group.ops)) {
    linalg::GenericOp generic = op.op;
    if (Operation *made = op.result.getDefiningOp(); made != generic)
      made->erase();
    generic->erase();
  }
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

/// Sums over what an op reads anyway are made once more for it: a sum that
/// several programs read would go through memory.
static void repeatSums(linalg::GenericOp op) {
  for (OpOperand *operand : op.getDpsInputOperands()) {
    auto sum = operand->get().getDefiningOp<linalg::GenericOp>();
    bool isKnown = sum && sum.getNumParallelLoops() == 3 &&
                   sum.getNumReductionLoops() == 1 &&
                   sum->getBlock() == op->getBlock() &&
                   llvm::all_of(sum.getDpsInputs(), [&](Value input) {
                     return llvm::is_contained(op.getDpsInputs(), input) &&
                            !isOverwritten(input, sum, op);
                   });
    if (!isKnown)
      continue;
    if (sum->hasOneUse()) {
      sum->moveBefore(op);
      continue;
    }
    OpBuilder b(op);
    operand->set(b.clone(*sum)->getResult(0));
  }
}

/// Whether the op only rounds a sum over tokens: the program of that does.
static bool isRounding(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 1)
    return false;
  auto sum = op.getDpsInputs().front().getDefiningOp<linalg::GenericOp>();
  return sum && sum.getNumParallelLoops() <= 2 &&
         sum.getNumReductionLoops() >= 2 &&
         findRounding(sum.getResult(0)) == op;
}

namespace {
struct OutlineLinalg : gdn::impl::OutlineLinalgPassBase<OutlineLinalg> {
  void runOnOperation() override {
    SmallVector<linalg::GenericOp> ops;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      for (linalg::FillOp fill :
           llvm::to_vector(function.getOps<linalg::FillOp>()))
        writeFill(fill);
      auto isOnTensors = [](linalg::GenericOp op) {
        return op.hasPureTensorSemantics();
      };
      SmallVector<linalg::GenericOp> readers;
      function.walk([&](linalg::GenericOp op) { readers.push_back(op); });
      for (linalg::GenericOp op : llvm::make_filter_range(readers, isOnTensors))
        repeatSums(op);
      function.walk([&](linalg::GenericOp op) {
        if (isOnTensors(op))
          ops.push_back(op);
      });
    }
    if (ops.empty())
      return;
    SymbolTable symbols(getOperation());
    SmallVector<WholeTensorOp> read;
    for (linalg::GenericOp op : ops) {
      if (isRounding(op))
        continue;
      FailureOr<WholeTensorOp> whole = readWholeTensorOp(op);
      if (failed(whole))
        return signalPassFailure();
      read.push_back(*whole);
    }
    for (WholeTensorGroup &group : groupOps(read)) {
      // An array may be the result of a launch by now.
      for (WholeTensorOp &op : group.ops)
        op = *readWholeTensorOp(op.op);
      outline(group, symbols);
    }
  }
};
} // namespace
