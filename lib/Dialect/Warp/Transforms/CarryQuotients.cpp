//===- CarryQuotients.cpp - Count quotients instead of dividing -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An iteration divided by a number that the loop does not change grows by one
// after that many iterations. A counter takes the place of the division: the
// loop carries quotient and rest, and with them what is made of the quotient
// alone, which is made anew when the quotient changes.
//
//===----------------------------------------------------------------------===//

#include "Iterations.h"

#include "gdn/Dialect/Warp/IR/Warp.h"
#include "gdn/Dialect/Warp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <map>

namespace mlir::gdn::warp {
#define GEN_PASS_DEF_CARRYQUOTIENTSPASS
#include "gdn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace mlir::gdn::warp

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// How far from the current iteration another may be that is divided.
static constexpr int64_t kMostAhead = 8;

namespace {

/// Quotient and rest of an iteration, and what is made of the quotient.
struct Count {
  Value quotient, rest;
  SmallVector<Value> made;

  /// What changes with the quotient: it and what is made of it.
  SmallVector<Value> getChanging() const {
    SmallVector<Value> changing = {quotient};
    llvm::append_range(changing, made);
    return changing;
  }
  static Count of(Value rest, ValueRange changing) {
    return {changing.front(), rest, llvm::to_vector(changing.drop_front())};
  }
  SmallVector<Value> flatten() const {
    SmallVector<Value> all = {rest};
    llvm::append_range(all, getChanging());
    return all;
  }
};

/// What is made of a quotient: an example, of that quotient.
struct Recipe {
  Value example, quotient;
};

/// The divisions of one loop by one number.
class Counters {
public:
  Counters(IRRewriter &b, scf::ForOp loop, Value divisor)
      : b(b), loop(loop), loc(loop.getLoc()), divisor(divisor) {}

  /// Adds a division, or its rest, of the iteration `ahead` of this one.
  void add(Operation *division, int64_t ahead) {
    divisions[ahead].push_back(division);
  }

  /// Counts; returns the loop that does.
  scf::ForOp carry();

private:
  /// The division of an iteration as one op at the start of the loop, in the
  /// place of all others.
  Count divide(int64_t ahead);
  /// Finds what the loop makes of a quotient alone.
  void findMade(int64_t ahead, Value quotient);
  /// Makes it, but of another quotient.
  Value remake(Value value, IRMapping &map);
  SmallVector<Value> makeAll(Value quotient);
  /// The count one iteration later.
  Count advance(const Count &count);
  /// The count of the loop's iteration `ahead`, which may be below zero.
  Count start(int64_t ahead);
  Value constant(int64_t number) {
    return arith::ConstantIntOp::create(b, loc, number, 32);
  }

  IRRewriter &b;
  scf::ForOp loop;
  Location loc;
  Value divisor;
  std::map<int64_t, SmallVector<Operation *>> divisions;
  SmallVector<Recipe> recipes;
  /// What the loop makes of quotients, with the recipe that makes it.
  struct Use {
    Value value;
    int64_t ahead;
    size_t recipe;
  };
  SmallVector<Use> uses;
};

} // namespace

/// Whether few iterations run `op`.
static bool isSeldom(Operation *op) {
  return isUnlikely(op, WarpDialect::getLikelyAttrName());
}

/// Whether two values are made in the same way of their quotients.
static bool areAlike(const Recipe &x, const Recipe &y) {
  if (x.example == x.quotient || y.example == y.quotient)
    return x.example == x.quotient && y.example == y.quotient;
  if (x.example == y.example)
    return true;
  Operation *ofX = x.example.getDefiningOp(), *ofY = y.example.getDefiningOp();
  return ofX && ofY && ofX->getName() == ofY->getName() &&
         ofX->getAttrDictionary() == ofY->getAttrDictionary() &&
         ofX->getNumOperands() == ofY->getNumOperands() &&
         x.example.getType() == y.example.getType() && isPure(ofX) &&
         ofX->getNumRegions() == 0 &&
         llvm::all_of(llvm::zip(ofX->getOperands(), ofY->getOperands()),
                      [&](auto pair) {
                        return areAlike({std::get<0>(pair), x.quotient},
                                        {std::get<1>(pair), y.quotient});
                      });
}

Count Counters::divide(int64_t ahead) {
  b.setInsertionPointToStart(loop.getBody());
  Value number = arith::AddIOp::create(
      b, loc,
      arith::SubIOp::create(b, loc, loop.getInductionVar(),
                            loop.getLowerBound()),
      constant(ahead));
  Count count;
  count.quotient = arith::DivUIOp::create(b, loc, number, divisor);
  count.rest = arith::RemUIOp::create(b, loc, number, divisor);
  for (Operation *op : divisions[ahead])
    b.replaceOp(op, isa<arith::DivUIOp>(op) ? count.quotient : count.rest);
  return count;
}

void Counters::findMade(int64_t ahead, Value quotient) {
  llvm::SetVector<Value> made;
  made.insert(quotient);
  loop.walk([&](Operation *op) {
    bool isMade =
        op->getNumResults() == 1 && op->getNumRegions() == 0 && isPure(op) &&
        llvm::any_of(op->getOperands(),
                     [&](Value value) { return made.contains(value); }) &&
        llvm::all_of(op->getOperands(), [&](Value value) {
          return made.contains(value) || loop.isDefinedOutsideOfLoop(value);
        });
    if (isMade && !isSeldom(op))
      made.insert(op->getResult(0));
  });
  llvm::SetVector<Value> last;
  for (Value value : made) {
    bool isTaken = llvm::any_of(value.getUsers(), [&](Operation *user) {
      return !isSeldom(user) &&
             (user->getNumResults() != 1 || !made.contains(user->getResult(0)));
    });
    // A cast costs less than a register.
    Value source = value;
    while (auto cast = source.getDefiningOp<arith::IndexCastUIOp>())
      source = cast.getIn();
    if (isTaken && source != quotient)
      last.insert(source);
  }
  for (Value value : last) {
    Recipe recipe = {value, quotient};
    auto *known = llvm::find_if(
        recipes, [&](const Recipe &other) { return areAlike(recipe, other); });
    size_t number = known - recipes.begin();
    if (known == recipes.end())
      recipes.push_back(recipe);
    uses.push_back({value, ahead, number});
  }
}

Value Counters::remake(Value value, IRMapping &map) {
  if (map.contains(value) || loop.isDefinedOutsideOfLoop(value))
    return map.lookupOrDefault(value);
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    remake(operand, map);
  b.clone(*op, map);
  return map.lookup(value);
}

SmallVector<Value> Counters::makeAll(Value quotient) {
  IRMapping map;
  for (const Recipe &recipe : recipes)
    map.map(recipe.quotient, quotient);
  return llvm::map_to_vector(recipes, [&](const Recipe &recipe) {
    return remake(recipe.example, map);
  });
}

Count Counters::advance(const Count &count) {
  Value more = arith::AddIOp::create(b, loc, count.rest, constant(1));
  Value isOver =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, more, divisor);
  Value rest = arith::SelectOp::create(b, loc, isOver, constant(0), more);
  auto change = [&]() -> Count {
    Value quotient = arith::AddIOp::create(b, loc, count.quotient, constant(1));
    return {quotient, rest, makeAll(quotient)};
  };
  if (recipes.empty()) {
    // Not worth a branch.
    Value next = arith::SelectOp::create(b, loc, isOver, change().quotient,
                                         count.quotient);
    return {next, rest, {}};
  }
  auto choice = scf::IfOp::create(
      b, loc, ValueRange(count.getChanging()).getTypes(), isOver,
      /*withElseRegion=*/true);
  choice->setAttr(WarpDialect::getLikelyAttrName(), b.getBoolAttr(false));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.elseBlock());
  scf::YieldOp::create(b, loc, count.getChanging());
  b.setInsertionPointToStart(choice.thenBlock());
  scf::YieldOp::create(b, loc, change().getChanging());
  return Count::of(rest, choice.getResults());
}

Count Counters::start(int64_t ahead) {
  Count count;
  count.quotient = constant(0);
  count.rest = constant(std::min<int64_t>(ahead, 0));
  count.made = makeAll(count.quotient);
  for (int64_t passed = 0; passed < ahead; ++passed)
    count = advance(count);
  return count;
}

scf::ForOp Counters::carry() {
  std::map<int64_t, Count> divided, counted;
  for (auto &[ahead, ops] : divisions)
    divided[ahead] = divide(ahead);
  for (auto &[ahead, count] : divided)
    findMade(ahead, count.quotient);
  // The count of a later iteration is what that of the one before becomes.
  SmallVector<int64_t> carried;
  for (auto &[ahead, count] : divided)
    if (!divided.count(ahead - 1))
      carried.push_back(ahead);
  b.setInsertionPoint(loop);
  SmallVector<Value> inits;
  for (int64_t ahead : carried)
    llvm::append_range(inits, start(ahead).flatten());
  auto yields = [&](OpBuilder &, Location, ArrayRef<BlockArgument> values) {
    OpBuilder::InsertionGuard guard(b);
    size_t size = 2 + recipes.size();
    // The body moves to the longer loop afterwards.
    b.setInsertionPointToStart(loop.getBody());
    for (auto [number, first] : llvm::enumerate(carried)) {
      auto own = values.slice(number * size, size);
      SmallVector<Value> all = llvm::to_vector_of<Value>(own);
      counted[first] = Count::of(all.front(), ValueRange(all).drop_front());
      for (int64_t ahead = first; divided.count(ahead + 1); ++ahead)
        counted[ahead + 1] = advance(counted[ahead]);
    }
    b.setInsertionPoint(loop.getBody()->getTerminator());
    SmallVector<Value> next;
    for (int64_t ahead : carried) {
      auto later = counted.find(ahead + 1);
      llvm::append_range(next, (later == counted.end() ? advance(counted[ahead])
                                                       : later->second)
                                   .flatten());
    }
    return next;
  };
  auto longer = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      b, inits, /*replaceInitOperandUsesInLoop=*/false, yields));
  for (Use &use : uses)
    use.value.replaceAllUsesWith(counted[use.ahead].made[use.recipe]);
  for (auto &[ahead, count] : divided) {
    b.replaceOp(count.quotient.getDefiningOp(), counted[ahead].quotient);
    b.replaceOp(count.rest.getDefiningOp(), counted[ahead].rest);
  }
  return longer;
}

/// Whether a counter may replace the division `op`. If it divides an iteration
/// before the current one, it must not run where the loop has no such
/// iteration.
static bool canCount(Operation *op, Value divisor, const Iteration &of) {
  if (of.ahead >= 0)
    return of.ahead <= kMostAhead;
  // A rest that counts from below zero passes no divisor of 31 bits before it
  // is zero.
  auto quotient = divisor.getDefiningOp<arith::DivUIOp>();
  return of.ahead >= -kMostAhead && quotient &&
         getConstantIntValue(quotient.getRhs()).value_or(0) > 1 &&
         runsFrom(op, of.loop, -of.ahead);
}

namespace {
struct CarryQuotients
    : gdn::warp::impl::CarryQuotientsPassBase<CarryQuotients> {
  void runOnOperation() override {
    IRRewriter b(&getContext());
    using Key = std::pair<Operation *, Value>;
    llvm::MapVector<Key, SmallVector<std::pair<Operation *, int64_t>>> found;
    getOperation()->walk([&](Operation *op) {
      if (!isa<arith::DivUIOp, arith::RemUIOp>(op) ||
          !op->getResult(0).getType().isInteger(32))
        return;
      Value divisor = op->getOperand(1);
      std::optional<Iteration> of = findIteration(op->getOperand(0));
      if (of && !getConstantIntValue(divisor) &&
          of->loop.isDefinedOutsideOfLoop(divisor) &&
          of->loop->isAncestor(op) && canCount(op, divisor, *of))
        found[{of->loop, divisor}].emplace_back(op, of->ahead);
    });
    // A loop that counts is another op.
    DenseMap<Operation *, scf::ForOp> loops;
    for (auto &[key, divisions] : found) {
      auto [it, isNew] = loops.try_emplace(key.first);
      if (isNew)
        it->second = cast<scf::ForOp>(key.first);
      Counters counters(b, it->second, key.second);
      for (auto [op, ahead] : divisions)
        counters.add(op, ahead);
      it->second = counters.carry();
    }
  }
};
} // namespace
