//===- GuardLaunches.cpp - Branches of a function without a host's choice -===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BranchResults.h"

#include "gdn/Dialect/Tile/Transforms/GPU/Passes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

#define DEBUG_TYPE "gdn-tile-guard-launches"

namespace mlir::gdn::tile {
#define GEN_PASS_DEF_GUARDLAUNCHESPASS
#include "gdn/Dialect/Tile/Transforms/GPU/Passes.h.inc"
} // namespace mlir::gdn::tile

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tile;

namespace {
/// What a condition of a function follows from: ops without effects, arrays
/// whose elements and sizes they take, and values that are such a size.
struct Condition {
  SetVector<Operation *> ops;
  SetVector<Value> arrays;
  llvm::MapVector<Value, std::pair<Value, int64_t>> sizes;
};
} // namespace

static bool readsArray(Operation *op) {
  return isa<tensor::ExtractOp, tensor::DimOp>(op);
}

/// Notes which values are sizes of what a launch makes.
static void noteSizes(Value array, Condition &condition) {
  auto launch = array.getDefiningOp<LaunchOp>();
  if (!launch)
    return;
  auto number = cast<OpResult>(array).getResultNumber();
  auto empty = launch.getOutputs()[number].getDefiningOp<tensor::EmptyOp>();
  for (auto [dim, size] :
       llvm::enumerate(cast<RankedTensorType>(array.getType()).getShape()))
    if (empty && ShapedType::isDynamic(size))
      condition.sizes.try_emplace(empty.getDynamicSize(dim), array, dim);
}

/// The ops that `value` follows from, up to sizes of arrays that are known.
static void collectOps(Value value, Condition &condition) {
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitUsesFromAbove = false;
  options.filter = [&](Operation *op) {
    return !isa<LaunchOp>(op) && isMemoryEffectFree(op) &&
           !isa<RankedTensorType>(op->getResult(0).getType()) &&
           !condition.sizes.contains(op->getResult(0));
  };
  condition.ops.clear();
  (void)getBackwardSlice(value, &condition.ops, options);
}

/// Whether the host knows a condition: by sizes of arrays alone.
static bool followsFromSizes(const Condition &condition) {
  return llvm::none_of(condition.ops, [](Operation *op) {
    return op->walk([](tensor::ExtractOp) { return WalkResult::interrupt(); })
        .wasInterrupted();
  });
}

/// Reads what `value` follows from.
static Condition readCondition(Value value) {
  Condition condition;
  auto visit = [&](auto callback) {
    for (Operation *op : condition.ops)
      op->walk([&](Operation *nested) {
        if (readsArray(nested))
          callback(nested);
      });
  };
  collectOps(value, condition);
  visit([&](Operation *op) {
    if (auto extract = dyn_cast<tensor::ExtractOp>(op))
      noteSizes(extract.getTensor(), condition);
  });
  collectOps(value, condition);
  visit([&](Operation *op) { condition.arrays.insert(op->getOperand(0)); });
  return condition;
}

/// Whether a program can know `value` by what a condition reads.
static bool isKnown(Value value, const Condition &condition) {
  auto has = [&](Value other) {
    return condition.ops.contains(other.getDefiningOp()) ||
           condition.arrays.contains(other) || condition.sizes.contains(other);
  };
  if (!has(value))
    return false;
  return llvm::all_of(condition.ops, [&](Operation *op) {
    WalkResult all = op->walk([&](Operation *nested) {
      return WalkResult(
          success(llvm::all_of(nested->getOperands(), [&](Value v) {
            Operation *from = v.getParentBlock()->getParentOp();
            return op->isAncestor(from) || has(v);
          })));
    });
    return !all.wasInterrupted();
  });
}

/// Makes reads of tensors those of the arrays that a program has instead.
static void readMemory(Operation *root, const IRMapping &map) {
  SmallVector<Operation *> readers;
  root->walk([&](Operation *op) {
    if (readsArray(op))
      readers.push_back(op);
  });
  for (Operation *op : readers) {
    OpBuilder b(op);
    Value array = map.lookupOrDefault(op->getOperand(0));
    Value read;
    if (auto extract = dyn_cast<tensor::ExtractOp>(op))
      read =
          memref::LoadOp::create(b, op->getLoc(), array, extract.getIndices());
    else
      read = memref::DimOp::create(b, op->getLoc(), array,
                                   cast<tensor::DimOp>(op).getIndex());
    op->getResult(0).replaceAllUsesWith(read);
    op->erase();
  }
}

/// Gives `program` the arrays of a condition, and lets its work items leave
/// unless the condition is `wanted`.
static void guardProgram(ProgramOp program, const Condition &condition,
                         Value value, bool wanted) {
  Block &body = program.getBody().front();
  OpBuilder b(&body, body.begin());
  Location loc = program.getLoc();
  IRMapping map;
  auto place = static_cast<unsigned>(program.getNumInputs());
  SmallVector<Attribute> names;
  if (ArrayAttr all = program.getArgNamesAttr())
    names.assign(all.begin(), all.end());
  for (Value array : condition.arrays) {
    map.map(array,
            body.insertArgument(place, getArrayType(array.getType()), loc));
    if (!names.empty())
      names.insert(names.begin() + place, b.getStringAttr("condition"));
    ++place;
  }
  program.setNumInputs(place);
  if (!names.empty())
    program.setArgNamesAttr(b.getArrayAttr(names));
  for (auto [value, place] : condition.sizes)
    if (Value array = map.lookupOrNull(place.first))
      map.map(value, memref::DimOp::create(b, loc, array, place.second));
  SmallVector<Operation *> copies;
  for (Operation *op : condition.ops)
    copies.push_back(b.clone(*op, map));
  Value leaves = map.lookup(value);
  if (wanted) {
    Value yes = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
    leaves = arith::XOrIOp::create(b, loc, leaves, yes);
  }
  // The others look at what launches of the same side have made.
  for (auto leave : body.getOps<LeaveOp>())
    leave.setEarly(false);
  LeaveOp::create(b, loc, leaves, ValueRange(), /*early=*/false,
                  /*unread=*/true);
  for (Operation *copy : copies)
    readMemory(copy, map);
}

namespace {
/// The programs of a module, and how often each is launched. To search the
/// module for the uses of each program takes longer than all else here.
class Programs {
public:
  explicit Programs(ModuleOp module) : symbols(module) {
    for (auto function : module.getOps<func::FuncOp>())
      function.walk([&](LaunchOp launch) { ++launches[find(launch)]; });
  }

  /// The program of a launch in front of `function`, which nothing else
  /// launches: a copy if something does.
  ProgramOp takeOwn(LaunchOp launch, func::FuncOp function) {
    ProgramOp program = find(launch);
    if (launches[program] < 2)
      return program;
    --launches[program];
    program = program.clone();
    symbols.insert(program, Block::iterator(function));
    launch.setProgramAttr(SymbolRefAttr::get(program));
    ++launches[program];
    return program;
  }

private:
  ProgramOp find(LaunchOp launch) {
    return symbols.lookup<ProgramOp>(
        launch.getProgramAttr().getLeafReference());
  }

  SymbolTable symbols;
  DenseMap<Operation *, unsigned> launches;
};
} // namespace

/// Lets the launches of a block, whose condition is `wanted`, have no effect
/// unless it is, and moves all ops of the block in front of `choice`. Returns
/// the launches.
static SmallVector<LaunchOp> hoist(Block *block, scf::IfOp choice,
                                   const Condition &condition, bool wanted,
                                   Programs &programs) {
  auto launches = llvm::to_vector(block->getOps<LaunchOp>());
  for (LaunchOp launch : launches) {
    // Others launch it without a condition.
    ProgramOp program =
        programs.takeOwn(launch, choice->getParentOfType<func::FuncOp>());
    guardProgram(program, condition, choice.getCondition(), wanted);
    launch.getInputsMutable().append(condition.arrays.getArrayRef());
  }
  for (Operation &op : llvm::make_early_inc_range(block->without_terminator()))
    op.moveBefore(choice);
  return launches;
}

/// 1 if two sizes are equal, else 0: the host has arithmetic alone.
static Value areEqual(OpBuilder &b, arith::CmpIOp compare) {
  Location loc = compare.getLoc();
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  auto oneMore = [&](Value size) -> Value {
    return arith::AddIOp::create(b, loc, size, one);
  };
  Value x = compare.getLhs(), y = compare.getRhs();
  return arith::DivUIOp::create(b, loc,
                                oneMore(arith::MinUIOp::create(b, loc, x, y)),
                                oneMore(arith::MaxUIOp::create(b, loc, x, y)));
}

/// Moves all ops of a block in front of `choice`. Its launches have `times` as
/// many work items: all of them, or none. Returns the launches.
static SmallVector<LaunchOp> hoist(Block *block, scf::IfOp choice,
                                   Value times) {
  auto launches = llvm::to_vector(block->getOps<LaunchOp>());
  for (LaunchOp launch : launches) {
    OpBuilder b(launch);
    OpOperand &sequences = launch.getGridMutable()[0];
    sequences.set(
        arith::MulIOp::create(b, launch.getLoc(), sequences.get(), times));
  }
  for (Operation &op : llvm::make_early_inc_range(block->without_terminator()))
    op.moveBefore(choice);
  return launches;
}

/// The same by whether the sizes that the condition compares are equal.
static FailureOr<std::pair<SmallVector<LaunchOp>, SmallVector<LaunchOp>>>
hoistBySizes(scf::IfOp choice) {
  auto compare = choice.getCondition().getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq ||
      !compare.getLhs().getType().isIndex())
    return choice.emitOpError("expected a condition on sizes to compare two by "
                              "eq, got ")
           << choice.getCondition();
  OpBuilder b(choice);
  Value yes = areEqual(b, compare);
  Value one = arith::ConstantIndexOp::create(b, choice.getLoc(), 1);
  Value no = arith::SubIOp::create(b, choice.getLoc(), one, yes);
  return std::pair(hoist(choice.thenBlock(), choice, yes),
                   hoist(choice.elseBlock(), choice, no));
}

/// Replaces a branch by the launches of both sides.
static LogicalResult guard(scf::IfOp choice, Programs &programs) {
  WalkResult nested = choice.walk([&](Operation *op) {
    return op != choice && !isa<scf::YieldOp, LaunchOp>(op) &&
                   !isMemoryEffectFree(op)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  if (nested.wasInterrupted() || choice.getElseRegion().empty())
    return choice.emitOpError("expected launches and what is pure on both "
                              "sides, got others");
  Condition condition = readCondition(choice.getCondition());
  if (!isKnown(choice.getCondition(), condition))
    return choice.emitOpError("expected a condition that follows from arrays "
                              "alone, got ")
           << choice.getCondition();
  SmallVector<LaunchOp> firstLaunches, secondLaunches;
  if (followsFromSizes(condition)) {
    auto launches = hoistBySizes(choice);
    if (failed(launches))
      return failure();
    std::tie(firstLaunches, secondLaunches) = *launches;
  } else {
    firstLaunches = hoist(choice.thenBlock(), choice, condition,
                          /*wanted=*/true, programs);
    secondLaunches = hoist(choice.elseBlock(), choice, condition,
                           /*wanted=*/false, programs);
  }
  // Equal sizes become one value.
  IRRewriter rewriter(choice.getContext());
  auto function = choice->getParentOfType<func::FuncOp>();
  DominanceInfo dominance(function);
  eliminateCommonSubExpressions(rewriter, dominance, function);
  auto yields = [](Block *block) {
    return llvm::to_vector(block->getTerminator()->getOperands());
  };
  SmallVector<Value> first = yields(choice.thenBlock()),
                     second = yields(choice.elseBlock());
  for (auto [one, other] : llvm::zip(first, second))
    if (failed(joinResults(choice, one, other, secondLaunches)))
      return failure();
  shareTemporaries(firstLaunches, secondLaunches, first);
  choice->replaceAllUsesWith(second);
  condition = readCondition(choice.getCondition());
  choice.erase();
  for (Operation *op : llvm::reverse(condition.ops))
    if (op->use_empty())
      op->erase();
  return success();
}

namespace {
struct GuardLaunches : tile::impl::GuardLaunchesPassBase<GuardLaunches> {
  void runOnOperation() override {
    Programs programs(getOperation());
    SmallVector<scf::IfOp> choices;
    // Inner ones first.
    for (auto function : getOperation().getOps<func::FuncOp>())
      function.walk([&](scf::IfOp choice) { choices.push_back(choice); });
    for (scf::IfOp choice : choices)
      if (failed(guard(choice, programs)))
        return signalPassFailure();
  }
};
} // namespace
